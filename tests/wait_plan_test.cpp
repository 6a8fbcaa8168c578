#include "redlease/plan/wait_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

namespace redlease {
namespace {

using namespace std::chrono_literals;
using Pause = LeaseClock::duration;

constexpr Deadline start = Deadline{} + 1h;

// The pauses that a plan makes when it is always told the same.
std::vector<Pause> pauses(WaitPlan plan, std::size_t count, auto saw) {
  std::vector<Pause> out;
  Deadline now = *plan.next();
  while (out.size() < count) {
    saw(plan, now);
    if (!plan.next()) break;
    out.push_back(*plan.next() - now);
    now = *plan.next();
  }
  return out;
}
constexpr auto trouble = [](WaitPlan& plan, Deadline now) { plan.saw_trouble(now); };
constexpr auto busy_for_long = [](WaitPlan& plan, Deadline now) { plan.saw_busy(now, 1h); };
constexpr auto busy_for_ever = [](WaitPlan& plan, Deadline now) { plan.saw_busy(now, std::nullopt); };

TEST(WaitPlan, TriesFirstAtOnceEvenIfTheEndIsNowOrPast) {
  EXPECT_EQ(WaitPlan(start, Deadline::max(), 1).next(), start);
  EXPECT_EQ(WaitPlan(start, start, 1).next(), start);
  EXPECT_EQ(WaitPlan(start, Deadline::min(), 1).next(), start);
}

TEST(WaitPlan, AWaitOfNothingIsOneTry) {
  WaitPlan plan(start, start, 1);
  plan.saw_busy(start, 5ms);
  EXPECT_EQ(plan.next(), std::nullopt);
  EXPECT_EQ(plan.tries(), 1U);
}

TEST(WaitPlan, IntervalsGrowBy60PercentWithin25PercentOfJitter) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    double middle = 10e6;
    for (const Pause pause : pauses(WaitPlan(start, Deadline::max(), seed), 12, trouble)) {
      EXPECT_GE(static_cast<double>(pause.count()), middle * 0.75 - 1);
      EXPECT_LE(static_cast<double>(pause.count()), middle * 1.25 + 1);
      middle = std::min(middle * 1.6, 200e6);
    }
  }
}

TEST(WaitPlan, IntervalsStayBoundedAndLong) {
  for (const Pause pause : pauses(WaitPlan(start, Deadline::max(), 7), 10'000, busy_for_ever)) {
    EXPECT_LE(pause, Pause(WaitPlan::longest_interval));
    EXPECT_GE(pause, 7ms);
  }
}

TEST(WaitPlan, JitterFillsItsRange) {
  auto steady = pauses(WaitPlan(start, Deadline::max(), 7), 5'000, busy_for_long);
  steady.erase(steady.begin(), steady.begin() + 10);
  const auto [low, high] = std::ranges::minmax(steady);
  EXPECT_LT(low, 152ms);
  EXPECT_GT(high, 248ms);
  const auto below = std::ranges::count_if(steady, [](Pause p) { return p < 200ms; });
  EXPECT_NEAR(static_cast<double>(below) / static_cast<double>(steady.size()), 0.5, 0.05);
}

TEST(WaitPlan, ComesJustAfterTheHoldersTtlEnds) {
  std::set<Pause> seen;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    WaitPlan plan(start, Deadline::max(), seed);
    for (int i = 0; i < 20; ++i) plan.saw_trouble(start);
    plan.saw_busy(start, 30ms);
    EXPECT_GE(*plan.next(), start + 32ms);
    EXPECT_LT(*plan.next(), start + 42ms);
    seen.insert(*plan.next() - start);
  }
  EXPECT_LT(*seen.begin(), 33ms);
  EXPECT_GT(*seen.rbegin(), 41ms);
}

TEST(WaitPlan, AHolderThatStaysLongDoesNotStretchTheInterval) {
  WaitPlan plan(start, Deadline::max(), 3);
  plan.saw_busy(start, 1h);
  EXPECT_LE(*plan.next(), start + 13ms);
}

TEST(WaitPlan, ARemainderOfNothingMeansSoonButNeverASpin) {
  for (const Millis remaining : {0ms, -5ms, Millis::min()}) {
    WaitPlan plan(start, Deadline::max(), 3);
    for (int i = 0; i < 100; ++i) {
      plan.saw_busy(start, remaining);
      EXPECT_GE(*plan.next(), start + 2ms);
      EXPECT_LT(*plan.next(), start + 12ms);
    }
  }
}

TEST(WaitPlan, NeverTriesAtOrPastTheEndAndTriesOnceJustBeforeIt) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Deadline end = start + 700ms;
    WaitPlan plan(start, end, seed);
    Deadline last = start;
    while (plan.next()) {
      last = *plan.next();
      ASSERT_LT(last, end);
      plan.saw_busy(last, std::nullopt);
    }
    EXPECT_LE(last, end - 20ms);
    EXPECT_GE(last, end - 22ms) << "a lease that frees itself before the deadline must not be missed";
  }
}

TEST(WaitPlan, NothingIsTriedTooNearTheEndForItsAnswer) {
  for (const Pause left : {Pause(22ms), Pause(21ms), Pause(5ms), Pause(0), Pause(-1h)}) {
    WaitPlan plan(start, start + 1h, 9);
    plan.saw_trouble(start + 1h - left);
    EXPECT_EQ(plan.next(), std::nullopt) << left.count();
  }
}

TEST(WaitPlan, ATryBeyondTheEndIsMadeTwentyMillisecondsBeforeIt) {
  WaitPlan plan(start, start + 1h, 9);
  for (int i = 0; i < 20; ++i) plan.saw_trouble(start);  // the interval has grown
  plan.saw_trouble(start + 1h - 60ms);
  EXPECT_EQ(plan.next(), start + 1h - 20ms);
  plan.saw_trouble(start + 1h - 20ms);
  EXPECT_EQ(plan.next(), std::nullopt);
}

TEST(WaitPlan, SameSeedSamePlanOtherSeedOtherPlan) {
  const auto plan = [](std::uint64_t seed) { return pauses(WaitPlan(start, Deadline::max(), seed), 50, trouble); };
  EXPECT_EQ(plan(1), plan(1));
  std::set<std::vector<Pause>> seen;
  for (std::uint64_t seed = 0; seed < 64; ++seed) EXPECT_TRUE(seen.insert(plan(seed)).second) << seed;
}

TEST(WaitPlan, CountsItsTries) {
  WaitPlan plan(start, Deadline::max(), 1);
  EXPECT_EQ(plan.tries(), 0U);
  plan.saw_busy(start, 1ms);
  plan.saw_trouble(start);
  EXPECT_EQ(plan.tries(), 2U);
}

TEST(WaitPlan, ExtremeTimesSaturate) {
  WaitPlan late(Deadline::max(), Deadline::max(), std::numeric_limits<std::uint64_t>::max());
  late.saw_busy(Deadline::max(), Millis::max());
  EXPECT_EQ(late.next(), std::nullopt);
  WaitPlan early(Deadline::min(), Deadline::max(), 0);
  early.saw_busy(Deadline::min(), Millis::max());
  EXPECT_LE(*early.next(), Deadline::min() + WaitPlan::longest_interval);
  WaitPlan never(Deadline::min(), Deadline::min(), 0);
  never.saw_trouble(Deadline::min());
  EXPECT_EQ(never.next(), std::nullopt);
}

}  // namespace
}  // namespace redlease
