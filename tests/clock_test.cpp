#include "redlease/clock.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <type_traits>

namespace redlease {
namespace {

using namespace std::chrono_literals;

static_assert(std::chrono::is_clock_v<LeaseClock>);
static_assert(noexcept(LeaseClock::now()));

constexpr Deadline early = Deadline{} + 1h;

LeaseClock::time_point boot_time() {
  timespec t{};
  ::clock_gettime(CLOCK_BOOTTIME, &t);
  return LeaseClock::time_point(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
}

TEST(LeaseClock, ReadsTheClockThatRunsThroughSuspend) {
  const auto before = boot_time();
  const auto now = LeaseClock::now();
  const auto after = boot_time();
  EXPECT_LE(before, now);
  EXPECT_LE(now, after);
}

TEST(LeaseClock, RealClockIsLeaseClock) {
  const auto before = LeaseClock::now();
  const auto now = Clock::real().now();
  EXPECT_LE(before, now);
  EXPECT_LE(now, LeaseClock::now());
  EXPECT_EQ(&Clock::real(), &Clock::real());
}

TEST(DeadlineAfter, AddsOrdinaryDurationsOfAnyUnit) {
  EXPECT_EQ(deadline_after(early, 5ms), early + 5ms);
  EXPECT_EQ(deadline_after(early, -5ms), early - 5ms);
  EXPECT_EQ(deadline_after(early, 2h), early + 2h);
  EXPECT_EQ(deadline_after(early, 0ns), early);
}

TEST(DeadlineAfter, ForeverIsTheLastDeadline) {
  EXPECT_EQ(deadline_after(early, forever), Deadline::max());
  EXPECT_EQ(deadline_after(Deadline{}, forever), Deadline::max());
  EXPECT_EQ(deadline_after(Deadline::min(), forever), Deadline::max());
  EXPECT_EQ(deadline_after(early, std::chrono::hours::max()), Deadline::max());
  EXPECT_EQ(deadline_after(early, std::chrono::nanoseconds::max()), Deadline::max());
  EXPECT_EQ(deadline_after(Deadline::max(), 1ns), Deadline::max());
  EXPECT_EQ(deadline_after(Deadline::max(), forever), Deadline::max());
  EXPECT_EQ(deadline_in(forever), Deadline::max());
}

TEST(DeadlineAfter, TheFarPastIsTheFirstDeadline) {
  EXPECT_EQ(deadline_after(early, Millis::min()), Deadline::min());
  EXPECT_EQ(deadline_after(Deadline::min(), -1ns), Deadline::min());
  EXPECT_EQ(deadline_after(Deadline::min(), Millis::min()), Deadline::min());
  EXPECT_EQ(deadline_after(Deadline::max(), -1h), Deadline::max() - 1h);
  EXPECT_EQ(deadline_after(Deadline::min(), 1h), Deadline::min() + 1h);
}

TEST(DeadlineIn, CountsFromNow) {
  const auto before = LeaseClock::now();
  const auto deadline = deadline_in(1min);
  EXPECT_GE(deadline, before + 1min);
  EXPECT_LE(deadline, LeaseClock::now() + 1min);
}

}  // namespace
}  // namespace redlease
