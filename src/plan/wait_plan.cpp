#include "redlease/plan/wait_plan.hpp"

#include <algorithm>

namespace redlease {
inline namespace v0 {

namespace {

constexpr Millis settle{2};     // the server counts whole milliseconds, and a key is gone only after its last
constexpr Millis spread{10};    // so that those who wait for the same end do not come together
constexpr Millis last_try{20};  // before the end: room for its answer, so that "busy" is known and not in doubt

}  // namespace

WaitPlan::WaitPlan(Deadline start, Deadline give_up, std::uint64_t seed) noexcept
    : give_up_(give_up), next_(start), random_(seed) {}

std::optional<Deadline> WaitPlan::next() const noexcept { return next_; }

void WaitPlan::saw_busy(Deadline now, std::optional<Millis> remaining) noexcept {
  LeaseClock::duration pause = grown();
  if (remaining && *remaining < longest_interval) {
    pause = std::min<LeaseClock::duration>(pause, std::max(*remaining, Millis{0}) + settle + jitter(spread));
  }
  schedule(now, pause);
}

void WaitPlan::saw_trouble(Deadline now) noexcept { schedule(now, grown()); }

void WaitPlan::schedule(Deadline now, LeaseClock::duration pause) noexcept {
  ++tries_;
  const Deadline latest = give_up_ == Deadline::max() ? give_up_ : deadline_after(give_up_, -last_try);
  next_ = deadline_after(now, pause);
  if (*next_ < latest) return;
  if (deadline_after(now, settle) < latest) {
    next_ = latest;
  } else {
    next_.reset();
  }
}

LeaseClock::duration WaitPlan::jitter(LeaseClock::duration below) noexcept {
  // SplitMix64: two plans whose seeds differ by one bit have nothing in common.
  std::uint64_t z = random_ += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  z ^= z >> 31;
  return LeaseClock::duration(static_cast<LeaseClock::rep>(z % static_cast<std::uint64_t>(below.count())));
}

LeaseClock::duration WaitPlan::grown() noexcept {
  const LeaseClock::duration pause = interval_ * 3 / 4 + jitter(interval_ / 2);
  // The middle of the longest, so that its jitter still fits below longest_interval.
  interval_ = std::min<LeaseClock::duration>(interval_ * 8 / 5, LeaseClock::duration(longest_interval) * 4 / 5);
  return pause;
}

}  // namespace v0
}  // namespace redlease
