// One round of the Keeper's thread.
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "service/keeper.hpp"

namespace redlease {
inline namespace v0 {

namespace {

// A ticket names a slot and its generation, or an orphan.
constexpr std::uint64_t of_orphan = std::uint64_t{1} << 63;

constexpr Millis near_the_end{50};

// So many signals at a time, since whoever waits for the mutex should not wait for all that is lost at once.
constexpr std::size_t most_signals = 256;

std::uint64_t ticket_of(std::uint32_t slot, std::uint32_t generation) noexcept {
  return std::uint64_t{generation} << 32 | slot;
}

// Memory is asked for ahead of its use. Inlined, or g++ takes the call for one without effect.
[[gnu::always_inline]] inline void fetch(const Kept* kept) noexcept {
  if (kept == nullptr) return;
  __builtin_prefetch(kept);
  __builtin_prefetch(&kept->plan);
  __builtin_prefetch(&kept->acquired);  // the end of the plan
}

}  // namespace

Deadline Keeper::step(const Upkeep::News& news, Outbox& out) {
  const Deadline now = clock_.now();
  const auto slot_of = [&](std::size_t i) REDLEASE_REQUIRES(mutex_) -> const Slot* {
    if (i >= news.answers.size() || (news.answers[i].ticket & of_orphan) != 0) return nullptr;
    return &slots_[static_cast<std::uint32_t>(news.answers[i].ticket)];
  };
  for (std::size_t i = 0; i < news.answers.size(); ++i) {
    const Upkeep::Answer& answer = news.answers[i];
    if (const Slot* soon = slot_of(i + 16)) __builtin_prefetch(soon);
    if (const Slot* next = slot_of(i + 8)) fetch(next->kept);
    if ((answer.ticket & of_orphan) != 0) {
      saw_of_orphan(answer, out);
    } else {
      saw(answer, now, out);
    }
  }
  if (out_of_step_) schedule_all(out);
  if (news.no_connection) saw_no_connection(*news.no_connection, now, out);
  fire(now, out);
  // The rest of them come first: what is past must not be renewed.
  if (out.signals >= most_signals) return Deadline::min();
  const Deadline real_now = LeaseClock::now();
  for (const Orphan& orphan : orphans_.over(real_now)) {
    give_up(orphan, Errc::timed_out, "the server did not answer until then", out);
  }
  send_due(now, real_now);
  // An orphan that could not be sent waits for room or a connection, as those that are due do.
  const Deadline orphan = orphans_.next() > real_now ? orphans_.next() : Deadline::max();
  return std::min({timers_.next(), due_.next(), away_alarm_, orphan, orphans_.next_over()});
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
      if (!kept.plan.saw_renewed(answer.number, answer.sent, now)) break;
      kept.deadline = kept.plan.deadline();
      tell(out, &Observer::renewed, kept.key(), {.elapsed = now - answer.sent, .slack = before - now});
      break;
    }
    case Upkeep::Said::not_ours:
      if (kept.plan.saw_not_ours(answer.number, answer.cause, now)) lose(kept, answer.cause, out);
      break;
    case Upkeep::Said::again: kept.plan.saw_unsent(answer.number, now); break;
    default:
      if (!kept.plan.saw_failed(answer.number, now)) break;
      tell(out, &Observer::renew_failed, kept.key(), {.elapsed = kept.plan.op_timeout()}, answer.error);
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
    Kept* kept = awake(due_.top(), Where::due);
    due_.pop();
    if (kept == nullptr) continue;
    (void)kept->plan.saw_failed(kept->plan.sent(now), now);
    tell(out, &Observer::renew_failed, kept->key(), {}, shared);
    schedule(*kept);
  }
}

void Keeper::fire(Deadline now, Outbox& out) {
  look_after_away(now);
  while (due_.next() <= now && out.signals < most_signals) {
    Kept* kept = awake(due_.top(), Where::due);
    due_.pop();
    if (kept != nullptr) signal(*kept, out);
  }
  LeaseClock::duration early{0};  // once one is renewed, those that soon will be go along with it
  std::array<TimerHeap::Node, 32> room;
  for (bool more = true; more && timers_.next() <= deadline_after(now, early) && out.signals < most_signals;) {
    for (const TimerHeap::Node& node : take_turn(room, deadline_after(now, early))) {
      Kept* kept = awake(node, Where::timers);
      if (kept == nullptr) continue;
      slots_[kept->slot].alarm = Deadline::max();
      const RenewalPlan::Next next = kept->plan.next();
      if (kept->plan.signal().at <= now) {
        signal(*kept, out);
      } else if (next.step == RenewalPlan::Step::renew && next.at - std::min(early, kept->plan.early()) <= now) {
        early = send(*kept, now) ? kept->plan.early() : LeaseClock::duration{0};
      } else {
        if (next.step == RenewalPlan::Step::give_up && next.at <= now)
          kept->plan.gave_up(now);  // nobody said it is late
        schedule(*kept);            // its time was moved
        more = more && node.at <= now;
      }
    }
  }
}

// The nodes whose time has come by then, as many as there is room for.
std::span<const TimerHeap::Node> Keeper::take_turn(std::span<TimerHeap::Node> room, Deadline until) {
  std::size_t count = 0;
  for (; count < room.size() && timers_.next() <= until; timers_.pop()) {
    room[count] = timers_.top();
    __builtin_prefetch(&slots_[room[count++].slot]);
  }
  const auto turn = room.first(count);
  for (const TimerHeap::Node& node : turn) fetch(slots_[node.slot].kept);
  for (const TimerHeap::Node& node : turn) {
    if (const Kept* kept = slots_[node.slot].kept; kept != nullptr) {
      __builtin_prefetch(kept->key().data());
      __builtin_prefetch(kept->token().data());
    }
  }
  return turn;
}

// False: there is no room now, so it is due.
bool Keeper::send(Kept& kept, Deadline now) {
  const Deadline signal = kept.plan.signal().at;
  Slot& slot = slots_[kept.slot];
  if (!upkeep_->ready(kept.plan.op_timeout())) {
    due_.push({signal, kept.slot, slot.generation});
    slot.alarm = signal;
    slot.where = Where::due;
    return false;
  }
  slot.alarm = signal;  // that no answer comes is for the Upkeep to tell
  slot.where = Where::away;
  away_alarm_ = std::min(away_alarm_, signal);
  upkeep_->add({.verb = Upkeep::Verb::renew,
                .key = kept.key(),
                .token = kept.token(),
                .ttl = kept.plan.ttl(),
                .op_timeout = std::min<LeaseClock::duration>(kept.plan.op_timeout(), kept.plan.deadline() - now),
                .ticket = ticket_of(kept.slot, slot.generation),
                .number = kept.plan.sent(now)});
  return true;
}

void Keeper::send_due(Deadline now, Deadline real_now) {
  while (!due_.empty()) {
    Kept* kept = awake(due_.top(), Where::due);
    if (kept != nullptr && !upkeep_->ready(kept->plan.op_timeout())) break;
    due_.pop();
    if (kept == nullptr) continue;
    (void)send(*kept, now);
  }
  orphans_.send_due(real_now, [&](std::uint64_t ticket, const Orphan& orphan, std::uint32_t number) {
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
  ++out.signals;
  if (kept.plan.signal().step == RenewalPlan::Step::lose) {
    kept.plan.lost();
    lose(kept, kept.plan.loss().value_or(LossCause::deadline), out);
    return;
  }
  ask_to_stop(kept, out);
  kept.plan.asked();
  schedule(kept);
}

void Keeper::ask_to_stop(Kept& kept, Outbox& out) {
  if (kept.stop.stop_possible() && !kept.stop.stop_requested()) {
    out.calls.push_back({[stop = kept.stop]() mutable { stop.request_stop(); }, Notifier::Kind::stop});
  }
  kept.stopped = true;
}

void Keeper::lose(Kept& kept, LossCause cause, Outbox& out) {
  const Deadline now = clock_.now();
  ask_to_stop(kept, out);
  if (kept.call) {
    out.calls.push_back({[stop = kept.stop, call = kept.call, cause]() mutable {
                           stop.request_stop();  // first, whichever thread comes first
                           call->run(cause);
                         },
                         Notifier::Kind::on_lost});
  }
  kept.loss.store(cause);
  tell(out, &Observer::lost, kept.key(), {.held = std::min(now, kept.plan.deadline()) - kept.acquired, .loss = cause});
  if (closed_ || cause == LossCause::gone || cause == LossCause::taken) return;
  // Given back when the server would forget it anyway if no renewal were on its way.
  const Deadline begun = LeaseClock::now();
  adopt({std::string(kept.key()), std::string(kept.token()), kept.plan.op_timeout(), Deadline::min(),
         deadline_after(begun, kept.plan.ttl())},
        deadline_after(begun, kept.plan.margin()), out);
}

void Keeper::schedule(const Kept& kept) { schedule(kept, kept.plan.next().at); }

// A node for that time. One that comes before it stays: when its time has come, it is found to be too early.
void Keeper::schedule(const Kept& kept, Deadline at) {
  if (kept.slot == Kept::no_slot) return;
  Slot& slot = slots_[kept.slot];
  if (at >= slot.alarm && slot.where == Where::timers) return;
  if (at < Deadline::max()) timers_.push({at, kept.slot, slot.generation});
  slot.alarm = at;
  slot.where = Where::timers;
}

// Hardly any is away when its time comes, so there is a node only for those that are.
void Keeper::look_after_away(Deadline now) {
  if (now < away_alarm_) return;
  away_alarm_ = Deadline::max();
  for (const Slot& slot : slots_) {
    if (slot.kept == nullptr || slot.where != Where::away) continue;
    if (slot.alarm <= now) {
      schedule(*slot.kept);
    } else {
      away_alarm_ = std::min(away_alarm_, slot.alarm);
    }
  }
}

void Keeper::schedule_all(Outbox& out) {
  timers_.clear();
  due_.clear();
  for (Slot& slot : slots_) {
    slot.alarm = Deadline::max();
    slot.where = Where::timers;
    if (slot.kept == nullptr) continue;
    Kept& kept = *slot.kept;
    // Its plan has ended, and there was no memory to tell.
    if (const auto cause = kept.plan.loss(); cause && !kept.loss.load()) lose(kept, *cause, out);
    schedule(kept);
  }
  out_of_step_ = false;
}

Kept* Keeper::awake(const TimerHeap::Node& node, Where where) {
  const Slot& slot = slots_[node.slot];
  const bool counts = slot.generation == node.generation && slot.alarm == node.at && slot.where == where;
  return counts ? slot.kept : nullptr;
}

}  // namespace v0
}  // namespace redlease
