#include "redlease/plan/renewal_plan.hpp"

#include <algorithm>

namespace redlease {
inline namespace v0 {

namespace {

// Less than this before the deadline, one more try is of no use to anybody.
constexpr LeaseClock::duration shortest_pause = std::chrono::microseconds(300);

}  // namespace

RenewalPlan::RenewalPlan(const KeepTerms& terms, Deadline deadline, std::uint64_t seed) noexcept
    : deadline_(std::min(deadline, terms.cap)),
      cap_(terms.cap),
      term_(terms.ttl - terms.margin),
      ttl_(static_cast<std::int32_t>(terms.ttl.count())),
      op_timeout_(static_cast<std::int32_t>(terms.op_timeout.count())),
      stop_before_(static_cast<std::int32_t>(terms.stop_before.count())),
      random_(static_cast<std::uint32_t>(seed ^ (seed >> 32)) | 1),
      renew_(terms.renew) {
  schedule(deadline_after(deadline, -term_));
}

RenewalPlan::Next RenewalPlan::signal() const noexcept {
  if (ended_) return {Step::nothing, Deadline::max()};
  if (asked_ || stop_before_ == 0) return {Step::lose, deadline_};
  return {Step::ask_to_stop, deadline_after(deadline_, -Millis(stop_before_))};
}

RenewalPlan::Next RenewalPlan::next() const noexcept {
  const Next signal = this->signal();
  const Deadline renewal = in_flight() ? limit_ : due_;
  if (ended_ || renewal >= signal.at) return signal;
  return {in_flight() ? Step::give_up : Step::renew, renewal};
}

std::uint32_t RenewalPlan::sent(Deadline now) noexcept {
  limit_ = std::min(deadline_after(now, op_timeout()), deadline_);
  return ++number_;
}

void RenewalPlan::gave_up(Deadline now) noexcept { (void)saw_failed(number_, now); }

void RenewalPlan::lost() noexcept {
  if (ended_) return;
  ended_ = true;
  loss_ = deadline_ == cap_ ? LossCause::max_hold : LossCause::deadline;
}

bool RenewalPlan::saw_renewed(std::uint32_t number, Deadline counted_from, Deadline now) noexcept {
  if (ended_ || number <= answered_ || now >= deadline_) return false;
  answered_ = number;
  deadline_ = std::min(deadline_after(counted_from, term_), cap_);
  failures_ = 0;
  if (number == number_) limit_ = Deadline::max();
  schedule(counted_from);
  return true;
}

bool RenewalPlan::saw_failed(std::uint32_t number, Deadline now) noexcept {
  if (ended_ || number != number_ || !in_flight()) return false;
  limit_ = Deadline::max();
  const LeaseClock::duration left = (deadline_ - now) / 2;
  const LeaseClock::duration pause = jittered(LeaseClock::duration(ttl()) / 40 * (1 << failures_));
  failures_ = std::min<std::uint8_t>(failures_ + 1, 3);
  renew_at(left < shortest_pause ? Deadline::max() : now + std::clamp(pause, shortest_pause, left));
  return true;
}

void RenewalPlan::saw_unsent(std::uint32_t number, Deadline now) noexcept {
  if (ended_ || number != number_ || !in_flight()) return;
  limit_ = Deadline::max();
  renew_at(now);
}

bool RenewalPlan::saw_not_ours(std::uint32_t number, LossCause cause, Deadline now) noexcept {
  if (ended_ || number <= answered_ || now >= deadline_) return false;
  ended_ = true;
  loss_ = cause;
  return true;
}

void RenewalPlan::schedule(Deadline counted_from) noexcept {
  const LeaseClock::duration whole = ttl();
  // Where margin and stop_before leave little, a third of the ttl would be too late.
  const LeaseClock::duration room = term_ - (asked_ ? Millis(0) : Millis(stop_before_));
  renew_at(deadline_after(counted_from, jittered(std::clamp(room * 9 / 4, whole / 4, whole)) / 3));
}

// Unless the deadline cannot be moved any more.
void RenewalPlan::renew_at(Deadline at) noexcept { due_ = renew_ && deadline_ < cap_ ? at : Deadline::max(); }

// 10 % either way.
LeaseClock::duration RenewalPlan::jittered(LeaseClock::duration d) noexcept {
  random_ ^= random_ << 13;  // xorshift
  random_ ^= random_ >> 17;
  random_ ^= random_ << 5;
  return d - d / 10 + d / 5 * static_cast<int>(random_ % 1'024) / 1'024;
}

}  // namespace v0
}  // namespace redlease
