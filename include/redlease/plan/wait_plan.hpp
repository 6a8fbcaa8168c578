#pragma once
#include <cstdint>
#include <optional>

#include "redlease/clock.hpp"
#include "redlease/export.hpp"

namespace redlease {
inline namespace v0 {

/// When to try again for a lease that was not to be had: pure, no I/O, no threads, no clock, the randomness from its
/// seed.
///
/// At once, then at the holder's remaining ttl plus jitter and at a bounded, growing interval, whichever is first. The
/// last try is made no later than 20 ms before the end, so that its answer is known by then and not in doubt; after it,
/// it is time to give up. Usage: next() says when to try; after the try one of the saw_ functions says what came of it.
class REDLEASE_EXPORT WaitPlan {
 public:
  static constexpr Millis first_interval{10};     ///< grows by 1.6 each time; 25 % of jitter either way
  static constexpr Millis longest_interval{250};  ///< jitter included

  /// `give_up` may be Deadline::max(). Two plans with different seeds do not beat together.
  WaitPlan(Deadline start, Deadline give_up, std::uint64_t seed) noexcept;

  /// When to try next, or nothing: it is time to give up. The first answer is `start`. A time before now means now.
  std::optional<Deadline> next() const noexcept;

  /// Another holds it; `remaining` of its ttl if it has one. A remaining of 0 or less means: look again soon.
  void saw_busy(Deadline now, std::optional<Millis> remaining) noexcept;

  /// The server could not be asked, or nobody knows what it did.
  void saw_trouble(Deadline now) noexcept;

  /// How many tries were reported.
  std::uint64_t tries() const noexcept { return tries_; }

 private:
  void schedule(Deadline now, LeaseClock::duration pause) noexcept;
  LeaseClock::duration jitter(LeaseClock::duration below) noexcept;
  LeaseClock::duration grown() noexcept;
  Deadline give_up_;
  std::optional<Deadline> next_;
  LeaseClock::duration interval_{first_interval};
  std::uint64_t random_;
  std::uint64_t tries_{0};
};

}  // namespace v0
}  // namespace redlease
