// What a client does: one round of the Keeper for one lease, and what surrounds it.
#include <algorithm>
#include <string>
#include <utility>

#include "world.hpp"

namespace redlease::testing_support {

using namespace std::chrono_literals;
using Step = RenewalPlan::Step;

void World::step(Client& client, bool no_connection) {
  if (now_ < client.stalled_until) {
    client.woken_at = std::min(client.woken_at, client.stalled_until);
    return push(client.stalled_until, Kind::wake, {.client = client.id});
  }
  const Deadline now = client.clock.read(now_);
  const bool past = client.plan && !client.plan->loss() && !client.idle && now >= client.plan->deadline();
  const std::uint32_t renewals = client.renewals;
  for (const Message& message : std::exchange(client.inbox, {})) saw(client, message, now);
  if (no_connection) ++tally_.no_connection;
  if (no_connection && client.due) {
    client.plan->saw_failed(client.plan->sent(now), now);
    client.due = false;
  }
  fire(client, now);
  if (past && !client.plan->loss()) broken("the first thing it sees after its deadline is not the loss");
  if (past && client.renewals != renewals) broken("it renews after its deadline");
  tally_.not_withdrawn += client.orphans.over(now).size();
  contend(client, now);
  send_due(client, now);
  plan_wake(client);
}

void World::saw(Client& client, const Message& message, Deadline now) {
  if (message.connection + 1 == client.connections.size()) client.oldest_limit = Deadline::max();
  if (message.verb == Verb::release) return saw_of_orphan(client, message, now);
  if (message.token != client.token) return;
  if (message.verb == Verb::acquire) return saw_acquired(client, message, now);
  RenewalPlan& plan = *client.plan;
  const Deadline before = plan.deadline();
  switch (message.said) {
    case Said::done:
      if (!plan.saw_renewed(message.number, message.sent, now)) return;
      ++tally_.renewed;
      if (now - message.sent > terms_.op_timeout) ++tally_.late_counted;
      note(&client, "renewed by", message.number);
      if (plan.deadline() < before) broken("a renewal moved the deadline back");
      break;
    case Said::not_ours:
      if (plan.saw_not_ours(message.number, message.cause, now)) lose(client, message.cause, now);
      return;
    case Said::again: plan.saw_unsent(message.number, now); break;
    default: plan.saw_failed(message.number, now);
  }
  client.due = false;  // it may be no more
  if (message.said != Said::done && plan.deadline() != before) broken("a failure moved the deadline");
  if (plan.deadline() > plan.cap()) broken("the deadline lies behind the cap");
}

void World::saw_acquired(Client& client, const Message& message, Deadline now) {
  if (client.limit == Deadline::max()) return;
  if (message.said == Said::unknown) {
    client.limit = now;
    return;
  }
  client.limit = Deadline::max();
  const Deadline deadline = deadline_after(message.sent, terms_.ttl - terms_.margin);
  if (message.said != Said::done || now >= deadline) {
    if (message.said == Said::done) {
      client.orphans.add({{}, std::to_string(client.token), terms_.op_timeout, {}, now + terms_.ttl}, now);
    }
    return go_idle(client, now);
  }
  KeepTerms terms = terms_;
  if (max_hold_ != Span{}) terms.cap = message.sent + max_hold_;
  client.plan.emplace(terms, deadline, dice_.next());
  client.begun = now;
  client.work_until = now + dice_.upto(terms_.ttl * 5);
  client.renewals = 0;
  client.asked.reset();
  client.seen_lost = false;
  note(&client, "holds");
}

void World::saw_of_orphan(Client& client, const Message& message, Deadline now) {
  switch (message.said) {
    case Said::done:
    case Said::not_ours: {
      const bool released = message.said == Said::done;
      if (const auto gone = client.orphans.saw_gone(message.ticket, message.number, released, now)) {
        ++tally_.withdrawn;
        check_withdrawn(message.token);
      }
      break;
    }
    case Said::again: client.orphans.saw_unsent(message.ticket, now); break;
    default: client.orphans.saw_failed(message.ticket, now);
  }
}

void World::fire(Client& client, Deadline now) {
  if (!client.plan || client.idle || client.limit != Deadline::max()) return;
  RenewalPlan& plan = *client.plan;
  while (!client.idle && broken_.empty()) {
    const auto next = plan.next();
    if (plan.signal().at <= now) {
      signal(client, now);
    } else if (client.due) {
      return;
    } else if (next.step == Step::renew && next.at <= now) {
      client.due = true;
    } else if (next.at <= now) {
      ++tally_.given_up;
      plan.gave_up(now);
    } else {
      return;
    }
  }
}

void World::signal(Client& client, Deadline now) {
  if (client.plan->signal().step == Step::lose) {
    client.plan->lost();
    return lose(client, client.plan->loss().value_or(LossCause::deadline), now);
  }
  ++tally_.asked;
  check_ask(client, now);
  client.asked = now;
  client.plan->asked();
  client.due = false;
  note(&client, "is asked to stop");
}

void World::lose(Client& client, LossCause cause, Deadline now) {
  ++tally_.lost[static_cast<std::size_t>(cause)];
  note(&client, "has lost it, cause", static_cast<std::uint64_t>(cause));
  check_loss(client, cause, now);
  go_idle(client, now);
  if (cause == LossCause::gone || cause == LossCause::taken) return;
  client.orphans.add({{}, std::to_string(client.token), terms_.op_timeout, {}, now + terms_.ttl}, now + terms_.margin);
}

void World::go_idle(Client& client, Deadline now) {
  client.idle = true;
  client.due = false;
  client.try_at = now + dice_.upto(terms_.ttl) / 4;
}

// Tries to acquire, gives up doubtful tries, ends its work.
void World::contend(Client& client, Deadline now) {
  const std::string token = std::to_string(client.token);
  if (client.limit <= now) {
    client.orphans.add({{}, token, terms_.op_timeout, client.spent_by, client.spent_by + terms_.ttl}, now);
    client.limit = Deadline::max();
    note(&client, "gives up acquiring");
    go_idle(client, now);
  } else if (!client.idle && client.limit == Deadline::max() && now >= client.work_until) {
    ++tally_.released;
    client.plan->end();
    client.orphans.add({{}, token, terms_.op_timeout, {}, now + terms_.ttl}, now);
    note(&client, "has finished");
    go_idle(client, now);
  } else if (client.idle && client.try_at <= now && ready(client, now)) {
    client.idle = false;
    client.plan.reset();
    client.token = ++tokens_;
    client.sent = now;
    client.limit = now + terms_.op_timeout;
    const Span valid = Span(terms_.op_timeout) * 2;
    client.spent_by = now + valid * 102 / 100 + 1us;
    send(client,
         {.verb = Verb::acquire, .token = client.token, .sent = now, .not_after = server_clock_.read(now_) + valid});
  }
}

void World::send_due(Client& client, Deadline now) {
  if (client.due && ready(client, now)) {
    client.due = false;
    ++client.renewals;
    ++tally_.renewals;
    check_renewal(client, now);
    const std::uint32_t number = client.plan->sent(now);
    note(&client, "sends renewal", number);
    send(client, {.verb = Verb::renew, .number = number, .token = client.token, .sent = now});
  }
  client.orphans.send_due(now, [&](std::uint64_t ticket, const Orphan& orphan, std::uint32_t number) {
    if (!ready(client, now)) return false;
    send(client,
         {.verb = Verb::release, .number = number, .token = std::stoull(orphan.token), .ticket = ticket, .sent = now});
    return true;
  });
}

// Behind something unanswered for too long nothing more is sent; what was sent there may still be answered.
bool World::ready(Client& client, Deadline now) {
  if (client.connected && client.oldest_limit <= now) client.connected = false;
  if (!client.connected && !client.connecting && client.connect_at <= now) {
    client.connecting = true;
    push(now_ + delay() / 2, Kind::connected, {.client = client.id});
  }
  return client.connected;
}

void World::plan_wake(Client& client) {
  const Deadline now = client.clock.read(now_);
  const bool waits = !client.connected && !client.connecting;  // to connect
  Deadline next = std::min(client.limit, client.orphans.next_over());
  if (client.orphans.next() > now) next = std::min(next, client.orphans.next());
  if (client.idle && client.try_at > now) next = std::min(next, client.try_at);
  if (waits && client.connect_at > now) next = std::min(next, client.connect_at);
  if (!client.idle && client.limit == Deadline::max()) {
    next = std::min({next, client.work_until, client.due ? client.plan->signal().at : client.plan->next().at});
  }
  if (next == Deadline::max()) return;
  const Deadline at = std::max(client.clock.when(next), now_ + 1ns);
  if (at >= client.woken_at) return;
  client.woken_at = at;
  push(at, Kind::wake, {.client = client.id});
}

}  // namespace redlease::testing_support
