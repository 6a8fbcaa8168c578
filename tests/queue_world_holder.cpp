// The lease that a wait ended with, and what a wait leaves behind.
#include <algorithm>
#include <string>

#include "queue_world.hpp"

namespace redlease::testing_support {

using namespace std::chrono_literals;

void QueueWorld::hold(Client& client, Deadline from, std::uint64_t fence, std::uint32_t granted_in, Deadline now) {
  client.deadline = deadline_after(from, Span(ttl_) - margin_);
  client.spent_by = spent_by(client, now);
  if (client.spent_by > now) retire(client);
  if (now >= client.deadline) {
    ++tally_.too_late;
    note(&client, "is granted it too late");
    return release(client, now);
  }
  ++tally_.held;
  note(&client, "holds it by token", client.token);
  client.doing = Doing::holding;
  client.granted_in = granted_in;
  client.renews = dice_.chance(60);
  client.work_until = now + dice_.upto(hold_);
  client.renew_at = now + Span(ttl_) / 3;
  if (granted_in != memory_ || weather_ == QueueWeather::stepped) return;
  if (fence <= last_fence_) broken("a fence does not grow");
  last_fence_ = fence;
}

void QueueWorld::keep(Client& client, Deadline now) {
  if (client.doing != Doing::holding) return;
  if (now >= client.deadline || now >= client.work_until) {
    tally_.expired += now >= client.deadline;
    note(&client, now >= client.deadline ? "has lost it" : "has finished");
    release(client, now);
  } else if (client.renews && now >= client.renew_at) {
    client.renew_at = now + Span(ttl_) / 3;
    send(client, client.keeps_on, {.verb = Verb::renew, .token = client.token, .sent = now});
  }
}

void QueueWorld::release(Client& client, Deadline now) {
  orphan(client, now, Deadline::min());
  if (client.spent_by > now) orphan(client, now, client.spent_by);
  rest(client, now);
}

// From when on nothing that was not answered is carried out any more; min: from then on already.
Deadline QueueWorld::spent_by(const Client& client, Deadline after) const noexcept {
  Deadline latest = Deadline::min();
  for (const Unanswered& each : client.unanswered) latest = std::max(latest, each.spent_by);
  return latest > after ? latest : Deadline::min();
}

void QueueWorld::orphan(Client& client, Deadline now, Deadline spent_by) {
  client.orphans.add({{}, std::to_string(client.token), op_timeout_, spent_by, std::max(now, spent_by) + ttl_}, now);
  client.orphaned.push_back(client.token);
}

// Nothing of it is on its way any more.
void QueueWorld::settled(Client& client, Token token) {
  const auto entry = std::ranges::find(client.orphaned, token);
  if (entry != client.orphaned.end()) client.orphaned.erase(entry);
  if (std::ranges::find(client.orphaned, token) == client.orphaned.end()) over_.push_back(token);
}

void QueueWorld::saw_kept(Client& client, const Message& message, Deadline now) {
  const bool cut = message.said == Said::cut, answered = message.said <= Said::not_ours;
  if (cut && client.keeps_on == message.connection) client.keeps_on.reset();
  if (message.verb == Verb::release) {
    if (!answered) return client.orphans.saw_failed(message.ticket, now);
    if (!client.orphans.saw_gone(message.ticket, message.number, message.said == Said::done, now)) return;
    ++tally_.withdrawn;
    return settled(client, message.token);
  }
  if (client.doing != Doing::holding || message.token != client.token || !answered || now >= client.deadline) return;
  if (message.said == Said::done) {
    ++tally_.renewed;
    client.deadline = std::max(client.deadline, deadline_after(message.sent, Span(ttl_) - margin_));
    return;
  }
  if (client.granted_in == memory_ && weather_ != QueueWeather::stepped) broken("it was gone before its deadline");
  release(client, now);
}

void QueueWorld::send_orphans(Client& client, Deadline now) {
  for (const Orphan& orphan : client.orphans.over(now)) {
    ++tally_.not_withdrawn;
    const Token token = std::stoull(orphan.token);
    excused_.push_back(token);
    std::erase(client.orphaned, token);
  }
  if (client.keeps_on && client.connections[*client.keeps_on].cut && dice_.chance(50)) client.keeps_on.reset();
  client.orphans.send_due(now, [&](std::uint64_t ticket, const Orphan& orphan, std::uint32_t number) {
    send(client, client.keeps_on,
         {.verb = Verb::release, .number = number, .token = std::stoull(orphan.token), .ticket = ticket, .sent = now});
    return true;
  });
}

void QueueWorld::plan_wake(Client& client) {
  const Deadline now = client.clock.read(now_);
  Deadline next = std::min(client.orphans.next(), client.orphans.next_over());
  switch (client.doing) {
    case Doing::nothing:
    case Doing::dead:
      if (!closing_) next = std::min(next, client.try_at);
      break;
    case Doing::asking:
    case Doing::subscribing: next = std::min({next, client.limit, client.stop_at}); break;
    case Doing::leaving: next = std::min(next, client.limit); break;
    case Doing::listening: next = std::min({next, client.until, client.stop_at}); break;
    case Doing::holding:
      next = std::min({next, client.deadline, client.work_until});
      if (client.renews) next = std::min(next, client.renew_at);
      break;
    case Doing::deciding: break;
  }
  if (next == Deadline::max()) return;
  const Deadline at = std::max(client.clock.when(std::max(next, now)), now_ + 1ns);
  if (at >= client.woken_at) return;
  client.woken_at = at;
  push(at, Kind::wake, client.id);
}

}  // namespace redlease::testing_support
