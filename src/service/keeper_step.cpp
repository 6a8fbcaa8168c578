// One round of the Keeper's thread.
#include <algorithm>
#include <utility>

#include "service/keeper.hpp"

namespace redlease {
inline namespace v0 {

namespace {

// A ticket names a slot and its generation, or an orphan.
constexpr std::uint64_t of_orphan = std::uint64_t{1} << 63;

constexpr Millis near_the_end{50};

std::uint64_t ticket_of(std::uint32_t slot, std::uint32_t generation) noexcept {
  return std::uint64_t{generation} << 32 | slot;
}

}  // namespace

Deadline Keeper::step(const Upkeep::News& news, Outbox& out) {
  const Deadline now = clock_.now();
  for (const Upkeep::Answer& answer : news.answers) {
    if ((answer.ticket & of_orphan) != 0) {
      saw_of_orphan(answer, out);
    } else {
      saw(answer, now, out);
    }
  }
  if (out_of_step_) schedule_all();
  if (news.no_connection) saw_no_connection(*news.no_connection, now, out);
  fire(now, out);
  for (const Orphan& orphan : orphans_.over(LeaseClock::now())) {
    give_up(orphan, Errc::timed_out, "the server did not answer until then", out);
  }
  send_due(now);
  // An orphan that could not be sent waits for room or a connection, as those that are due do.
  const Deadline orphan = orphans_.next() > LeaseClock::now() ? orphans_.next() : Deadline::max();
  return std::min({timers_.next(), due_.next(), orphan, orphans_.next_over()});
}

void Keeper::saw(const Upkeep::Answer& answer, Deadline now, Outbox& out) {
  const Slot& slot = slots_[static_cast<std::uint32_t>(answer.ticket)];
  if (slot.kept == nullptr || slot.generation != answer.ticket >> 32) return;  // let go meanwhile
  Kept& kept = *slot.kept;
  switch (answer.said) {
    case Upkeep::Said::done: {
      const Deadline before = kept.plan.deadline();
      // Close to the deadline the time is asked anew: the holder may have seen it pass meanwhile.
      if (before - now < near_the_end) now = clock_.now();
      if (!kept.plan.saw_renewed(answer.number, answer.sent, now)) return;
      kept.deadline = kept.plan.deadline();
      tell(out, &Observer::renewed, kept.key, {.elapsed = now - answer.sent, .slack = before - now});
      break;
    }
    case Upkeep::Said::not_ours:
      if (kept.plan.saw_not_ours(answer.number, answer.cause, now)) lose(kept, answer.cause, out);
      return;
    case Upkeep::Said::again: kept.plan.saw_unsent(answer.number, now); break;
    default:
      if (!kept.plan.saw_failed(answer.number, now)) return;
      tell(out, &Observer::renew_failed, kept.key, {.elapsed = kept.plan.op_timeout()}, answer.error);
  }
  schedule(kept);
}

void Keeper::saw_of_orphan(const Upkeep::Answer& answer, Outbox& out) {
  const std::uint64_t ticket = answer.ticket & ~of_orphan;
  const Deadline now = LeaseClock::now();
  switch (answer.said) {
    case Upkeep::Said::done:
    case Upkeep::Said::not_ours:
      if (const auto gone = orphans_.saw_gone(ticket, answer.number, answer.said == Upkeep::Said::done, now)) {
        tell(out, &Observer::orphan_withdrawn, gone->key, {});
      }
      break;
    case Upkeep::Said::again: orphans_.saw_unsent(ticket, now); break;
    default: orphans_.saw_failed(ticket, now);
  }
}

// Whoever was due has failed; each tries again in its own time.
void Keeper::saw_no_connection(const Error& error, Deadline now, Outbox& out) {
  const auto shared = std::make_shared<const Error>(error);
  while (!due_.empty()) {
    Kept* kept = awake(due_.top(), true);
    due_.pop();
    if (kept == nullptr) continue;
    (void)kept->plan.saw_failed(kept->plan.sent(now), now);
    tell(out, &Observer::renew_failed, kept->key, {}, shared);
    schedule(*kept);
  }
}

void Keeper::fire(Deadline now, Outbox& out) {
  while (due_.next() <= now) {
    Kept* kept = awake(due_.top(), true);
    due_.pop();
    if (kept != nullptr) signal(*kept, out);
  }
  LeaseClock::duration early{0};  // once one is renewed, those that soon will be go along with it
  while (!timers_.empty() && timers_.next() - early <= now) {
    const TimerHeap::Node node = timers_.top();
    Kept* kept = awake(node, false);
    timers_.pop();
    if (kept == nullptr) continue;
    slots_[kept->slot].alarm = Deadline::max();
    const RenewalPlan::Next next = kept->plan.next();
    if (kept->plan.signal().at <= now) {
      signal(*kept, out);
    } else if (next.step == RenewalPlan::Step::renew && next.at - std::min(early, kept->plan.early()) <= now) {
      early = send(*kept, now) ? kept->plan.early() : LeaseClock::duration{0};
    } else {
      if (next.step == RenewalPlan::Step::give_up && next.at <= now) kept->plan.gave_up(now);  // nobody said it is late
      schedule(*kept);                                                                         // its time was moved
      if (node.at > now) break;
    }
  }
}

// False: there is no room now, so it is due.
bool Keeper::send(Kept& kept, Deadline now) {
  const Deadline signal = kept.plan.signal().at;
  Slot& slot = slots_[kept.slot];
  if (!upkeep_->ready(kept.plan.op_timeout())) {
    due_.push({signal, kept.slot, slot.generation});
    slot.alarm = signal;
    slot.is_due = 1;
    return false;
  }
  schedule(kept, signal);  // that no answer comes is for the Upkeep to tell
  upkeep_->add({.verb = Upkeep::Verb::renew,
                .key = kept.key,
                .token = kept.token,
                .ttl = kept.plan.ttl(),
                .op_timeout = std::min<LeaseClock::duration>(kept.plan.op_timeout(), kept.plan.deadline() - now),
                .ticket = ticket_of(kept.slot, slot.generation),
                .number = kept.plan.sent(now)});
  return true;
}

void Keeper::send_due(Deadline now) {
  while (!due_.empty()) {
    Kept* kept = awake(due_.top(), true);
    if (kept != nullptr && !upkeep_->ready(kept->plan.op_timeout())) break;
    due_.pop();
    if (kept == nullptr) continue;
    slots_[kept->slot].is_due = 0;
    slots_[kept->slot].alarm = Deadline::max();
    (void)send(*kept, now);
  }
  orphans_.send_due(LeaseClock::now(), [&](std::uint64_t ticket, const Orphan& orphan, std::uint32_t number) {
    if (!upkeep_->ready(orphan.op_timeout)) return false;
    upkeep_->add({.verb = Upkeep::Verb::release,
                  .key = orphan.key,
                  .token = orphan.token,
                  .place = orphan.place,
                  .ttl = {},
                  .op_timeout = orphan.op_timeout,
                  .ticket = ticket | of_orphan,
                  .number = number});
    return true;
  });
}

void Keeper::signal(Kept& kept, Outbox& out) {
  if (kept.plan.signal().step == RenewalPlan::Step::lose) {
    kept.plan.lost();
    lose(kept, kept.plan.loss().value_or(LossCause::deadline), out);
    return;
  }
  out.calls.emplace_back([stop = kept.stop]() mutable { stop.request_stop(); });
  kept.plan.asked();
  kept.stopped = true;
  schedule(kept);
}

void Keeper::lose(Kept& kept, LossCause cause, Outbox& out) {
  const Deadline now = clock_.now();
  out.calls.emplace_back([stop = kept.stop, call = kept.call, cause]() mutable {
    stop.request_stop();
    if (call) call->run(cause);
  });
  kept.stopped = true;
  kept.loss.store(cause);
  tell(out, &Observer::lost, kept.key, {.held = std::min(now, kept.plan.deadline()) - kept.acquired, .loss = cause});
  if (closed_ || cause == LossCause::gone || cause == LossCause::taken) return;
  // Given back when the server would forget it anyway if no renewal were on its way.
  const Deadline begun = LeaseClock::now();
  adopt({kept.key, kept.token, kept.plan.op_timeout(), Deadline::min(), deadline_after(begun, kept.plan.ttl())},
        deadline_after(begun, kept.plan.margin()), out);
}

void Keeper::schedule(const Kept& kept) { schedule(kept, kept.plan.next().at); }

// A node for that time. One that comes before it stays: when its time has come, it is found to be too early.
void Keeper::schedule(const Kept& kept, Deadline at) {
  if (kept.slot == Kept::no_slot) return;
  Slot& slot = slots_[kept.slot];
  if (at >= slot.alarm && slot.is_due == 0) return;
  timers_.push({at, kept.slot, slot.generation});
  slot.alarm = at;
  slot.is_due = 0;
}

void Keeper::schedule_all() {
  timers_.clear();
  due_.clear();
  for (Slot& slot : slots_) {
    slot.alarm = Deadline::max();
    slot.is_due = 0;
    if (slot.kept != nullptr) schedule(*slot.kept);
  }
  out_of_step_ = false;
}

Kept* Keeper::awake(const TimerHeap::Node& node, bool due) {
  const Slot& slot = slots_[node.slot];
  const bool counts = slot.generation == node.generation && slot.alarm == node.at && (slot.is_due == 1) == due;
  return counts ? slot.kept : nullptr;
}

void Keeper::take_slot(Kept& kept) {
  if (free_slot_ == Kept::no_slot) {
    if (slots_.size() == slots_.capacity()) slots_.reserve(slots_.size() + slots_.size() / 8 + 64);
    slots_.emplace_back();
    free_slot_ = static_cast<std::uint32_t>(slots_.size() - 1);
  }
  kept.slot = free_slot_;
  free_slot_ = std::exchange(slots_[kept.slot].next_free, Kept::no_slot);
  Slot& slot = slots_[kept.slot];
  slot.kept = &kept;
  slot.alarm = Deadline::max();
  slot.is_due = 0;
  ++kept_;
}

void Keeper::free_slot(Kept& kept) {
  if (kept.slot == Kept::no_slot) return;
  Slot& slot = slots_[kept.slot];
  slot.kept = nullptr;
  ++slot.generation;
  slot.next_free = std::exchange(free_slot_, kept.slot);
  kept.slot = Kept::no_slot;
  --kept_;
}

}  // namespace v0
}  // namespace redlease
