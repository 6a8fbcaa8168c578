#include "redlease/clock.hpp"

#include <ctime>

namespace redlease {
inline namespace v0 {

namespace {

class RealClock final : public Clock {
 public:
  Deadline now() const noexcept override { return LeaseClock::now(); }
};

}  // namespace

LeaseClock::time_point LeaseClock::now() noexcept {
  timespec t{};
  ::clock_gettime(CLOCK_BOOTTIME, &t);
  return time_point(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
}

const Clock& Clock::real() noexcept {
  static const Clock* const real = new RealClock;  // never destroyed: leases in statics still ask it at exit
  return *real;
}

}  // namespace v0
}  // namespace redlease
