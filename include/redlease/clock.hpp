#pragma once
#include <chrono>
#include <stop_token>

#include "redlease/export.hpp"

namespace redlease {
inline namespace v0 {

using Millis = std::chrono::milliseconds;
/// As a wait: no limit. As a duration it saturates wherever it is added to a time.
inline constexpr Millis forever = Millis::max();

/// The clock that leases live on. Reads CLOCK_BOOTTIME, which runs on while the machine is suspended: the server's ttl
/// does too, and CLOCK_MONOTONIC (libstdc++'s steady_clock) does not. Never stepped by whoever sets the wall clock.
struct REDLEASE_EXPORT LeaseClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<LeaseClock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept;
};
using Deadline = LeaseClock::time_point;

/// `from + d`, kept within what a Deadline can say: `forever` gives Deadline::max(), a time before all time
/// Deadline::min().
template <class R, class P>
constexpr Deadline deadline_after(Deadline from, std::chrono::duration<R, P> d) noexcept {
  using D = std::chrono::duration<R, P>;
  using std::chrono::duration_cast;
  if (d < D::zero()) {
    // Compared in D, which is mostly the coarser unit: converting Millis::min() to nanoseconds would overflow.
    const auto room =
        from.time_since_epoch() < LeaseClock::duration::zero() ? from - Deadline::min() : LeaseClock::duration::max();
    return d > -duration_cast<D>(room) ? from + duration_cast<LeaseClock::duration>(d) : Deadline::min();
  }
  const auto room =
      from.time_since_epoch() < LeaseClock::duration::zero() ? LeaseClock::duration::max() : Deadline::max() - from;
  return d < duration_cast<D>(room) ? from + duration_cast<LeaseClock::duration>(d) : Deadline::max();
}

/// Now plus `d`, saturating as deadline_after does.
template <class R, class P>
Deadline deadline_in(std::chrono::duration<R, P> d) noexcept {
  return deadline_after(LeaseClock::now(), d);
}

/// The time seam: what a Client and a MemoryStore ask for the time, so that tests can move it.
/// Implementations must be safe to call from any thread and must never go backwards.
class REDLEASE_EXPORT Clock {
 public:
  virtual ~Clock() = default;
  virtual Deadline now() const noexcept = 0;
  /// LeaseClock itself. Lives until the process ends.
  static const Clock& real() noexcept;
};

/// How long one call may go on: until an absolute time, or until somebody asks it to stop.
struct Limits {
  Deadline deadline{Deadline::max()};
  std::stop_token stop{};
};

}  // namespace v0
}  // namespace redlease
