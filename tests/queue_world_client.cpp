// One wait: what Wait does, and a Seat with its connections.
#include <algorithm>
#include <utility>

#include "queue_world.hpp"

namespace redlease::testing_support {

using namespace std::chrono_literals;

namespace {

constexpr Millis farewell{25};

}  // namespace

void QueueWorld::step(Client& client) {
  if (now_ < client.stalled_until) {
    client.woken_at = std::min(client.woken_at, client.stalled_until);
    return push(client.stalled_until, Kind::wake, client.id);
  }
  const Deadline now = client.clock.read(now_);
  for (const std::uint32_t reply : std::exchange(client.replies, {})) {
    const Message message = messages_[reply];
    saw(client, message, now);
  }
  if (client.doing <= Doing::nothing || client.doing == Doing::dead) {
    if (!closing_ && now >= client.try_at) begin(client, now);
  }
  if (waits(client) && now >= client.stop_at) {
    ++tally_.stopped;
    if (client.doing == Doing::asking) client.plan->saw_trouble(now);
    if (client.doing == Doing::asking) client.doubt = true;
    if (client.doing == Doing::subscribing) close_inbox(client);
    give_up(client, now, true);
  }
  time_out(client, now);
  if (client.doing == Doing::listening && (now >= client.until || !client.heard.empty() || client.inbox_lost)) {
    client.doing = Doing::deciding;
  }
  decide(client, now);
  keep(client, now);
  send_orphans(client, now);
  plan_wake(client);
}

void QueueWorld::begin(Client& client, Deadline now) {
  client.give_up = client.stop_at = Deadline::max();
  if (dice_.chance(50)) client.give_up = now + dice_.upto(dice_.chance(70) ? Span(heartbeat_) * 6 : Span(ttl_));
  if (dice_.chance(20)) client.stop_at = now + dice_.upto(heartbeat_ * 4);
  client.plan.emplace(WaitPlan::Terms{.start = now,
                                      .give_up = client.give_up,
                                      .ttl = ttl_,
                                      .margin = margin_,
                                      .inbox = client.inbox_up,
                                      .seed = dice_.next()});
  client.token = ++tokens_;
  client.arrival = 0;
  client.attempts = 0;
  client.doubt = false;
  client.unanswered.clear();
  client.begun = now_;
  client.stayed_since.reset();
  client.doing = Doing::deciding;
  note(&client, "waits, with token", client.token);
}

void QueueWorld::decide(Client& client, Deadline now) {
  for (int round = 0; client.doing == Doing::deciding; ++round) {
    if (round > 100) return broken("it spins");
    const WaitPlan::Next next = client.plan->next(now);
    switch (next.step) {
      case WaitPlan::Step::ask: ask(client, next.how, now); break;
      case WaitPlan::Step::subscribe: subscribe(client, now); break;
      case WaitPlan::Step::give_up:
        ++tally_.gave_up;
        give_up(client, now, false);
        break;
      case WaitPlan::Step::listen:
        if (next.until <= now) broken("it listens until a time that has passed");
        client.until = next.until;
        if (!listen(client, now)) client.doing = Doing::listening;
    }
  }
}

void QueueWorld::ask(Client& client, Ask how, Deadline now) {
  const Span limit = client.attempts == 0 ? Span(op_timeout_) : std::min<Span>(op_timeout_, client.give_up - now);
  if (limit <= Span::zero()) return give_up(client, now, false);
  ++client.attempts;
  ++client.number;
  ++tally_.asked;
  if (how != Ask::last) check_quiet(client, now);
  const Span valid = Span(op_timeout_) * 2;
  client.doing = Doing::asking;
  client.how = how;
  client.sent = now;
  client.limit = now + limit;
  Message message{.verb = Verb::acquire, .number = client.number, .token = client.token, .sent = now};
  message.question = {client.token, how, ttl_, lifetime_, client.inbox, client.arrival, server_time() + valid / 1us};
  send(client, client.asks_on, message);
  client.unanswered.push_back({client.number, *client.asks_on, now + valid * 102 / 100 + 2us});
}

void QueueWorld::subscribe(Client& client, Deadline now) {
  close_inbox(client);
  client.heard.clear();
  client.doing = Doing::subscribing;
  client.limit = now + std::min<Span>(op_timeout_, client.give_up - now);
  std::optional<std::uint32_t> fresh;
  send(client, fresh, {.verb = Verb::subscribe, .number = client.inbox, .sent = now});
}

// Whatever it is known by from now on, nobody has subscribed to that yet.
void QueueWorld::close_inbox(Client& client) {
  end_inbox(client, client.inbox, now_ + dice_.upto(longest_delay_));
  client.inbox = ++inboxes_;
  client.inbox_up = client.inbox_lost = false;
}

// Something of it is still on its way to the queue: nothing is to be granted to that.
void QueueWorld::retire(Client& client) {
  ++tally_.retired;
  close_inbox(client);
  retired_.push_back({client.token, now_ + longest_delay_});
}

// Whether there was something to hear.
bool QueueWorld::listen(Client& client, Deadline now) {
  while (!client.heard.empty()) {
    const Heard heard = client.heard.front();
    client.heard.erase(client.heard.begin());
    if (heard.wake.token != client.token) continue;
    if (heard.wake.fence == 0) {
      ++tally_.hinted;
      client.plan->saw_hint(now);
      return true;
    }
    ++tally_.heard;
    const std::optional<Deadline> from = client.plan->saw_grant(now, heard.wake.time);
    tally_.believed += from.has_value();
    tally_.not_believed += !from.has_value();
    if (from) hold(client, *from, heard.wake.fence, heard.granted_in, now);
    return true;
  }
  if (!std::exchange(client.inbox_lost, false)) return false;
  client.plan->saw_no_inbox(now);
  return true;
}

void QueueWorld::saw(Client& client, const Message& message, Deadline now) {
  const bool cut = message.said == Said::cut;
  switch (message.verb) {
    case Verb::acquire:
      if (cut && client.asks_on == message.connection) client.asks_on.reset();
      if (!cut) {
        std::erase_if(client.unanswered, [&](const Unanswered& each) {
          return each.connection == message.connection && each.number <= message.number;
        });
      }
      if (client.doing == Doing::asking && message.number == client.number) saw_answer(client, message, now);
      return;
    case Verb::subscribe:
      if (client.doing != Doing::subscribing || message.number != client.inbox) return;
      client.doing = Doing::deciding;
      if (message.said == Said::done && !client.inbox_lost) {
        client.inbox_up = true;
        return client.plan->saw_inbox(now);
      }
      close_inbox(client);
      if (message.said == Said::not_ours && dice_.chance(30)) return client.plan->saw_inbox_refused(now);
      return client.plan->saw_no_inbox(now);
    case Verb::leave:
      if (client.doing != Doing::leaving || message.token != client.token) return;
      return settle(client, now, message.said != Said::done && message.said != Said::not_ours);
    default: saw_kept(client, message, now);
  }
}

void QueueWorld::saw_answer(Client& client, const Message& message, Deadline now) {
  client.doing = Doing::deciding;
  client.doubt = message.said == Said::cut;
  if (message.said != Said::done) return client.plan->saw_trouble(now);
  const QueueServer::Answer& answer = message.answer;
  switch (answer.said) {
    case QueueServer::Said::too_late:
      if (now < client.limit) return ask(client, client.how, now);
      return client.plan->saw_trouble(now);
    case QueueServer::Said::acquired: return hold(client, message.sent, answer.fence, message.granted_in, now);
    case QueueServer::Said::busy: return client.plan->saw_busy(now, answer.place.remaining);
    case QueueServer::Said::queued:
      ++tally_.placed;
      client.arrival = answer.arrival;
      if (answer.place.remaining < heartbeat_ * 2) client.quiet_since = now, client.quiet_asked = 0;  // it may end
      client.plan->saw_queued(now, answer.place);
  }
}

void QueueWorld::time_out(Client& client, Deadline now) {
  if (now < client.limit) return;
  switch (client.doing) {
    case Doing::asking:
      client.doing = Doing::deciding;
      client.doubt = true;
      client.plan->saw_trouble(now);
      // The next question goes behind this one, or over a new connection.
      if (client.asks_on && (client.connections[*client.asks_on].cut || dice_.chance(50))) client.asks_on.reset();
      return;
    case Doing::subscribing:
      client.doing = Doing::deciding;
      close_inbox(client);
      return client.plan->saw_no_inbox(now);
    case Doing::leaving: return settle(client, now, true);
    default: return;
  }
}

void QueueWorld::give_up(Client& client, Deadline now, bool stopped) {
  note(&client, stopped ? "is stopped" : "gives up");
  client.left = now;
  // What was not answered may have got a place after the last answer.
  const bool nothing_there = !client.plan->in_queue() && client.unanswered.empty();
  if (client.doubt || nothing_there) return settle(client, now, client.doubt);
  ++tally_.left;
  client.doing = Doing::leaving;
  client.limit = now + std::min(op_timeout_, farewell);
  send(client, client.asks_on, {.verb = Verb::leave, .token = client.token, .sent = now});
}

// The wait is over without a lease.
void QueueWorld::settle(Client& client, Deadline now, bool in_doubt) {
  const Deadline spent_by = this->spent_by(client, client.left);
  if (in_doubt) {
    ++tally_.doubtful;
    if (client.asks_on) send(client, client.asks_on, {.verb = Verb::leave, .token = client.token, .sent = now});
    client.asks_on.reset();
  }
  if (in_doubt || spent_by > client.left) {
    retire(client);
    orphan(client, now, spent_by);
  } else {
    settled(client, client.token);
  }
  rest(client, now);
}

void QueueWorld::rest(Client& client, Deadline now) {
  client.doing = Doing::nothing;
  client.stayed_since.reset();
  client.try_at = now + dice_.upto(std::max(ttl_, Millis(100))) / 4;
}

}  // namespace redlease::testing_support
