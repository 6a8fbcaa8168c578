// Requests, answers and wake-ups on their way, and what goes wrong.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "queue_world.hpp"

namespace redlease::testing_support {

using namespace std::chrono_literals;

namespace {

constexpr std::array outcomes{"comes too late with question", "acquires by question", "is told busy by question",
                              "is told its place by question"};

}  // namespace

// The clock was read for it already; it may yet take a while until it leaves.
void QueueWorld::send(Client& client, std::optional<std::uint32_t>& on, Message message) {
  Connection& way = connection(client, on);
  message.client = client.id;
  message.life = client.life;
  message.connection = *on;
  message.epoch = way.epoch;
  Deadline leaves = now_;
  if (has(QueueWeather::clients) && !closing_ && dice_.chance(1)) {
    ++tally_.stalls;
    leaves = client.stalled_until = std::max(client.stalled_until, now_ + dice_.upto(ttl_ * 2));
    disturb(leaves);
    note(&client, "stalls before it sends");
  }
  way.to = std::max(way.to, leaves + delay());
  const auto index = static_cast<std::uint32_t>(messages_.size());
  const bool lost = has(QueueWeather::network) && !closing_ && !way.cut && dice_.chance(3);
  if (lost) {
    ++tally_.cuts;
    way.cut = true;
    note(&client, "connection cut, request lost", message.number);
    disturb(way.to + op_timeout_);
    message.said = Said::cut;
    if (dice_.chance(50)) {  // the client hears of it
      messages_.push_back(message);
      push(way.to, Kind::reply, client.id, index);
    }
    return;
  }
  if (way.cut) return;
  messages_.push_back(message);
  push(way.to, Kind::arrival, client.id, index);
}

void QueueWorld::arrive(std::uint32_t index) {
  if (!serving()) return push(paused_until_, Kind::arrival, messages_[index].client, index);
  Message& message = messages_[index];
  Client& client = clients_[message.client];
  const bool gone = message.life != client.life;  // the answer finds nobody
  if (message.epoch != epoch_) {
    message.said = Said::cut;
    return gone ? void() : push(now_ + delay(), Kind::reply, client.id, index);
  }
  if (has(QueueWeather::network) && !closing_ && dice_.chance(1)) {
    ++tally_.refused;
    disturb(now_);
    message.said = Said::unavailable;
  } else {
    carry_out(client, message);
  }
  if (!gone) reply(client, index);
  deliver_wakes();
}

void QueueWorld::reply(Client& client, std::uint32_t index) {
  Connection& way = client.connections[messages_[index].connection];
  if (has(QueueWeather::network) && !closing_ && !way.cut && dice_.chance(3)) {
    ++tally_.cuts;
    way.cut = true;
    note(&client, "connection cut, reply lost", messages_[index].number);
    disturb(now_ + op_timeout_);
  }
  if (way.cut) return;
  way.back = std::max(way.back, now_ + delay());
  if (way.back > now_ + longest_delay_) disturb(way.back);
  push(way.back, Kind::reply, client.id, index);
}

void QueueWorld::carry_out(Client& client, Message& message) {
  const std::int64_t time = server_time();
  message.granted_in = memory_;
  message.said = Said::done;
  switch (message.verb) {
    case Verb::acquire:
      message.answer = server_.acquire(message.question, time);
      message.answer.place.sent = message.sent;
      if (message.answer.said == QueueServer::Said::busy && message.token == client.token) client.stayed_since.reset();
      tally_.too_old += message.answer.said == QueueServer::Said::too_late;
      note(&client, outcomes[static_cast<std::size_t>(message.answer.said)], message.number);
      break;
    case Verb::release:
    case Verb::leave:
      if (!server_.release(message.token, time)) message.said = Said::not_ours;
      note(&client, message.said == Said::done ? "is rid of token" : "has left the queue, token", message.token);
      break;
    case Verb::renew:
      if (!server_.renew(message.token, ttl_, time)) message.said = Said::not_ours;
      break;
    case Verb::subscribe:
      if (server_.no_subscribe) {
        message.said = Said::not_ours;
      } else if (message.life == client.life && client.inbox == message.number) {
        server_.subscribe(message.number);
      }
  }
  check_turns();
}

// PUBLISH has been carried out; on the way some are lost, late, or come twice.
void QueueWorld::deliver_wakes() {
  for (const QueueServer::Wake& wake : std::exchange(server_.wakes, {})) {
    const auto index = static_cast<std::uint32_t>(wakes_.size());
    wakes_.push_back({wake, memory_});
    const auto to = std::ranges::find_if(clients_, [&](const Client& c) { return c.inbox == wake.inbox; });
    if (to == clients_.end()) {
      disturb(now_);
      continue;
    }
    Deadline at = now_ + delay();
    if (has(QueueWeather::wakes) && !closing_) {
      if (dice_.chance(10)) {
        ++tally_.wakes_lost;
        note(&*to, "is not woken");
        disturb(now_);
        continue;
      }
      if (dice_.chance(10)) {
        ++tally_.wakes_late;
        at = now_ + dice_.upto(ttl_ * 2);
      }
      if (dice_.chance(10)) {
        ++tally_.wakes_twice;
        push(at + dice_.upto(ttl_ * 2), Kind::wake_up, to->id, index, wake.inbox);
      }
    }
    if (at > now_ + longest_delay_) disturb(at);
    push(at, Kind::wake_up, to->id, index, wake.inbox);
  }
}

// From `at` on the server has nobody there.
void QueueWorld::end_inbox(Client& client, Inbox inbox, Deadline at) {
  if (inbox == 0) return;
  if (at <= now_) return server_.unsubscribe(inbox);
  push(at, Kind::inbox_end, client.id, 0, inbox);
}

void QueueWorld::trouble() {
  if (closing_) return;
  if (has(QueueWeather::wakes)) trouble_wakes();
  if (has(QueueWeather::server)) trouble_server();
  if (weather_ == QueueWeather::stepped && dice_.chance(30)) {
    ++tally_.steps;
    const Span most = dice_.chance(50) ? Span(ttl_) : Span(lifetime_) * 2;
    server_step_ += dice_.upto(most * 2) - most;
    disturb(now_);
    note(nullptr, "the server's clock is stepped");
  }
  push(now_ + 1us + dice_.upto(heartbeat_ * 2), Kind::trouble, 0);
}

void QueueWorld::trouble_wakes() {
  Client& client = clients_[dice_.below(clients_.size())];
  if (client.inbox_up && dice_.chance(60)) {
    ++tally_.inboxes_killed;
    note(&client, "inbox killed");
    client.stayed_since.reset();
    // One of the two ends may see it much later than the other.
    const Deadline late = now_ + dice_.upto(dice_.chance(30) ? Span(lifetime_) * 2 : longest_delay_);
    const bool half_open = dice_.chance(30);
    end_inbox(client, client.inbox, half_open ? late : now_);
    const Deadline seen = half_open ? now_ : late;
    push(seen, Kind::inbox_seen_lost, client.id, 0, client.inbox);
    disturb(late);
  }
  const auto toggle = [&](bool& denied, std::uint64_t& counter) {
    if (!dice_.chance(denied ? 30 : 5)) return;
    denied = !denied;
    counter += denied;
    disturb(now_);
    for (Client& each : clients_) each.stayed_since.reset();
  };
  toggle(server_.no_publish, tally_.no_publish);
  toggle(server_.no_count, tally_.no_count);
  toggle(server_.no_subscribe, tally_.no_inbox);
}

void QueueWorld::trouble_server() {
  if (serving() && dice_.chance(20)) {
    ++tally_.pauses;
    paused_until_ = now_ + dice_.upto(std::max(Span(ttl_) * 3 / 2, Span(heartbeat_) * 2));
    note(nullptr, "the server pauses");
  }
  if (dice_.chance(20)) {
    ++tally_.queues_lost;
    server_.lose_queue();
    for (Client& client : clients_) client.stayed_since.reset();
    note(nullptr, "the queue is lost");
  }
  if (dice_.chance(20)) {
    const bool empty = dice_.chance(60);
    ++tally_.restarts;
    tally_.forgotten += empty;
    ++epoch_;
    memory_ += empty;
    server_.restart(empty);
    for (Client& client : clients_) {
      client.stayed_since.reset();
      push(std::max(now_, paused_until_) + delay(), Kind::inbox_seen_lost, client.id, 0, client.inbox);
    }
    note(nullptr, empty ? "the server restarts empty" : "the server restarts");
  }
  if (dice_.chance(30) &&
      server_.set(QueueServer::foreign + ++strangers_, Millis(1 + dice_.below(3'000)), server_time())) {
    ++tally_.barged;
    check_given(QueueServer::foreign + strangers_);
    note(nullptr, "a stranger barges in");
  }
  disturb(std::max(now_, paused_until_) + longest_delay_ + op_timeout_);
}

void QueueWorld::crash(Client& client) {
  ++tally_.crashes;
  note(&client, "crashes");
  const bool half_open = dice_.chance(40);
  tally_.half_open += half_open;
  end_inbox(client, client.inbox, now_ + dice_.upto(half_open ? Span(lifetime_) * 2 : longest_delay_));
  excused_.push_back(client.token);
  for (const Token token : client.orphaned) excused_.push_back(token);
  Client next;
  next.id = client.id;
  next.life = client.life + 1;
  next.clock = client.clock;
  next.connections = std::move(client.connections);
  next.doing = Doing::dead;
  next.try_at = client.clock.read(now_ + 1us + dice_.upto(heartbeat_ * 4));
  std::destroy_at(&client);  // a plan cannot be assigned
  std::construct_at(&client, std::move(next));
  disturb(now_ + ttl_ + lifetime_ * 2);
  plan_wake(client);
}

}  // namespace redlease::testing_support
