// When a waiter asks, and when it gives up. Its inbox: wait_plan_inbox_test.cpp; grants: wait_plan_grant_test.cpp.
#include "redlease/plan/wait_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include "wait_terms.hpp"

namespace redlease {
namespace {

using namespace testing_support;
using Pause = LeaseClock::duration;

constexpr Deadline start = wait_start;

WaitPlan::Terms no_queue(std::uint64_t seed, Deadline give_up = Deadline::max()) {
  WaitPlan::Terms terms = patient(seed);
  terms.queue = false;
  terms.give_up = give_up;
  return terms;
}

// The pauses that a plan makes when it is always told the same.
std::vector<Pause> pauses(WaitPlan plan, std::size_t count, auto saw) {
  std::vector<Pause> out;
  for (Deadline now = start; out.size() < count;) {
    saw(plan, now);
    if (plan.next(now).step != WaitPlan::Step::listen) break;
    out.push_back(pause_of(plan, now));
    now += out.back();
  }
  return out;
}
constexpr auto trouble = [](WaitPlan& plan, Deadline now) { plan.saw_trouble(now); };
constexpr auto busy_for_long = [](WaitPlan& plan, Deadline now) { plan.saw_busy(now, 1h); };
constexpr auto busy_for_ever = [](WaitPlan& plan, Deadline now) { plan.saw_busy(now, std::nullopt); };

TEST(WaitPlan, AsksFirstAtOnceEvenIfTheEndIsNowOrPast) {
  for (const bool queue : {false, true}) {
    for (const Deadline give_up : {Deadline::max(), start, Deadline::min()}) {
      WaitPlan::Terms terms = no_queue(1, give_up);
      terms.queue = queue;
      EXPECT_EQ(wants(WaitPlan(terms), start), "to ask once");
    }
  }
}

TEST(WaitPlan, AWaitOfNothingIsOneTryThatLeavesNothingBehindWhateverIsAtHand) {
  for (const Pause wait : {Pause(0), Pause(1ms), Pause(20ms)}) {
    WaitPlan::Terms terms = patient();
    terms.give_up = start + wait;
    terms.inbox = true;
    WaitPlan plan(terms);
    EXPECT_EQ(wants(plan, start), "to ask once");
    plan.saw_busy(start, 5ms);
    EXPECT_EQ(wants(plan, start), "to give up");
    EXPECT_FALSE(plan.in_queue());
  }
}

TEST(WaitPlan, WhereThereIsNoQueueItAsksAgainAndAgainAndWantsNoInbox) {
  WaitPlan plan(no_queue(1));
  for (Deadline now = start; now < start + 1min; now += pause_of(plan, now)) {
    ASSERT_EQ(wants(plan, now), "to ask once");
    plan.saw_busy(now, 1h);
    ASSERT_EQ(wants(plan, now), "to listen");
  }
  EXPECT_FALSE(plan.in_queue());
}

TEST(WaitPlan, IntervalsGrowBy60PercentWithin25PercentOfJitter) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    double middle = 10e6;
    for (const Pause pause : pauses(WaitPlan(patient(seed)), 12, trouble)) {
      EXPECT_GE(static_cast<double>(pause.count()), middle * 0.75 - 1);
      EXPECT_LE(static_cast<double>(pause.count()), middle * 1.25 + 1);
      middle = std::min(middle * 1.6, 200e6);
    }
  }
}

TEST(WaitPlan, IntervalsStayBoundedAndLong) {
  for (const Pause pause : pauses(WaitPlan(no_queue(7)), 10'000, busy_for_ever)) {
    EXPECT_LE(pause, Pause(WaitPlan::longest_interval));
    EXPECT_GE(pause, 7ms);
  }
}

TEST(WaitPlan, JitterFillsItsRange) {
  auto steady = pauses(WaitPlan(no_queue(7)), 5'000, busy_for_long);
  steady.erase(steady.begin(), steady.begin() + 10);
  const auto [low, high] = std::ranges::minmax(steady);
  EXPECT_LT(low, 152ms);
  EXPECT_GT(high, 248ms);
  const auto below = std::ranges::count_if(steady, [](Pause p) { return p < 200ms; });
  EXPECT_NEAR(static_cast<double>(below) / static_cast<double>(steady.size()), 0.5, 0.05);
}

TEST(WaitPlan, WithoutAQueueComesJustAfterTheHoldersTtlEnds) {
  std::set<Pause> seen;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    WaitPlan plan(no_queue(seed));
    for (int i = 0; i < 20; ++i) plan.saw_trouble(start);
    plan.saw_busy(start, 30ms);
    seen.insert(pause_of(plan, start));
  }
  EXPECT_GE(*seen.begin(), 32ms);
  EXPECT_LT(*seen.begin(), 33ms);
  EXPECT_GT(*seen.rbegin(), 41ms);
  EXPECT_LT(*seen.rbegin(), 42ms);
}

TEST(WaitPlan, AHolderThatStaysLongDoesNotStretchTheInterval) {
  WaitPlan plan(no_queue(3));
  plan.saw_busy(start, 1h);
  EXPECT_LE(pause_of(plan, start), 13ms);
}

TEST(WaitPlan, ARemainderOfNothingMeansSoonButNeverASpin) {
  for (const Millis remaining : {0ms, -5ms, Millis::min()}) {
    WaitPlan polls(no_queue(3));
    for (int i = 0; i < 100; ++i) {
      polls.saw_busy(start, remaining);
      EXPECT_GE(pause_of(polls, start), 2ms);
      EXPECT_LT(pause_of(polls, start), 12ms);
      const WaitPlan waits = in_line(patient(static_cast<std::uint64_t>(i)), place_at({}, remaining));
      EXPECT_GE(pause_of(waits, start), 2ms);
      EXPECT_LT(pause_of(waits, start), 12ms);
    }
  }
}

TEST(WaitPlan, AHeartbeatIsASixthOfTheTtlWithinOneAndFiveSecondsAndAPlaceIsGoodForThree) {
  const auto heartbeat = [](Millis ttl) {
    WaitPlan::Terms terms = patient();
    terms.ttl = ttl;
    const WaitPlan plan(terms);
    EXPECT_EQ(plan.lifetime(), 3 * plan.heartbeat());
    return plan.heartbeat();
  };
  EXPECT_EQ(heartbeat(10ms), 1s);
  EXPECT_EQ(heartbeat(6s), 1s);
  EXPECT_EQ(heartbeat(12s), 2s);
  EXPECT_EQ(heartbeat(30s), 5s);
  EXPECT_EQ(heartbeat(24h), 5s);
}

TEST(WaitPlan, ThePlaceIsAskedForAgainAfterNineTenthsToOneHeartbeat) {
  std::set<Pause> seen;
  for (std::uint64_t seed = 0; seed < 500; ++seed) seen.insert(pause_of(in_line(patient(seed)), start));
  EXPECT_GE(*seen.begin(), 1'800ms);
  EXPECT_LT(*seen.begin(), 1'802ms);
  EXPECT_GT(*seen.rbegin(), 1'998ms);
  EXPECT_LT(*seen.rbegin(), 2s);
  const WaitPlan plan = in_line(patient());
  EXPECT_EQ(wants(plan, start + 2s), "to ask for a place");
}

TEST(WaitPlan, AHeartbeatIsAsLongHoweverManyAreAhead) {
  for (const std::size_t ahead : {std::size_t{1}, std::size_t{500}, std::numeric_limits<std::size_t>::max()}) {
    const Pause pause = pause_of(in_line(patient(), place_at({}, std::nullopt, ahead)), start);
    EXPECT_GE(pause, 1'800ms);
    EXPECT_LT(pause, 2s);
  }
}

TEST(WaitPlan, ComesWhenTheHoldersTtlEndsEachAfterTheOneAhead) {
  for (const std::size_t ahead : {std::size_t{0}, std::size_t{1}, std::size_t{16}, std::size_t{20}}) {
    std::set<Pause> seen;
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
      seen.insert(pause_of(in_line(patient(seed), place_at({}, 300ms, ahead)), start));
    }
    const Pause first = 302ms + std::min<std::size_t>(ahead, 16) * 5ms + (ahead > 16 ? ahead - 16 : 0) * 20ms;
    EXPECT_GE(*seen.begin(), first);
    EXPECT_LT(*seen.begin(), first + 1ms);
    EXPECT_GT(*seen.rbegin(), first + 9ms);
    EXPECT_LT(*seen.rbegin(), first + 10ms);
    if (ahead <= 16) {
      EXPECT_LT(*seen.rbegin(), 300ms + 100ms) << "the holder, and all who are ahead, may have died together";
    }
  }
}

TEST(WaitPlan, AskedToComeAgainComesAtOnceHoweverManyAreAhead) {
  for (const std::size_t ahead : {std::size_t{0}, std::size_t{500}, std::size_t{100'000}}) {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      WaitPlan::Place place = place_at({}, 0ms, ahead);
      place.foreign = true;  // there is no holder, thus none of ours
      EXPECT_LE(pause_of(in_line(patient(seed), place), start), 12ms);
    }
  }
}

TEST(WaitPlan, AForeignHolderIsAskedForEvery20To100MsByTheFirstAndLessOftenByThoseBehind) {
  for (const std::size_t ahead : {std::size_t{0}, std::size_t{3}}) {
    std::set<Pause> seen;
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
      WaitPlan::Place place = place_at({}, std::nullopt, ahead);
      place.foreign = true;
      seen.insert(pause_of(in_line(patient(seed), place), start));
    }
    const auto times = static_cast<Pause::rep>(ahead + 1);
    EXPECT_GE(*seen.begin(), times * 20ms);
    EXPECT_LT(*seen.begin(), times * 21ms);
    EXPECT_GT(*seen.rbegin(), times * 99ms);
    EXPECT_LT(*seen.rbegin(), times * 100ms);
  }
  WaitPlan::Place far = place_at({}, 1h, 100'000);
  far.foreign = true;
  EXPECT_GE(pause_of(in_line(patient(), far), start), 1'800ms) << "those far behind show no more than that they live";
}

TEST(WaitPlan, AfterTroubleItAsksAgainSoonAndOfAnAnswerThePausesBeginAnew) {
  WaitPlan plan = in_line(patient());
  for (int i = 0; i < 20; ++i) plan.saw_trouble(start);
  EXPECT_GE(pause_of(plan, start), 150ms);
  EXPECT_LE(pause_of(plan, start), 250ms);
  EXPECT_TRUE(plan.in_queue());
  plan.saw_queued(start, place_at({}));
  plan.saw_trouble(start);
  EXPECT_LE(pause_of(plan, start), 13ms);
}

TEST(WaitPlan, TheLastQuestionComes20MsBeforeTheEndAndLeavesTheQueue) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    WaitPlan::Terms terms = patient(seed);
    terms.give_up = start + 1'500ms;
    WaitPlan plan = in_line(terms);
    EXPECT_EQ(pause_of(plan, start), 1'480ms);
    EXPECT_EQ(wants(plan, start + 1'480ms), "to ask for the last time");
    EXPECT_TRUE(plan.in_queue()) << "until that is answered";
    plan.saw_busy(start + 1'481ms, 1h);
    EXPECT_FALSE(plan.in_queue());
    EXPECT_EQ(wants(plan, start + 1'481ms), "to give up");
  }
}

TEST(WaitPlan, ALastQuestionInTroubleIsTheLastAndThePlaceMayBeLeftBehind) {
  WaitPlan::Terms terms = patient();
  terms.give_up = start + 1'500ms;
  WaitPlan plan = in_line(terms);
  plan.saw_trouble(start + 1'482ms);
  EXPECT_EQ(wants(plan, start + 1'482ms), "to give up");
  EXPECT_TRUE(plan.in_queue());
}

TEST(WaitPlan, GivesUpWhenTheEndHasPassedAndThePlaceIsLeftBehind) {
  WaitPlan::Terms terms = patient();
  terms.give_up = start + 1'500ms;
  const WaitPlan plan = in_line(terms);
  EXPECT_EQ(wants(plan, start + 1'499ms), "to ask for the last time");
  EXPECT_EQ(wants(plan, start + 1'500ms), "to give up");
  EXPECT_EQ(wants(plan, Deadline::max()), "to give up");
  EXPECT_TRUE(plan.in_queue());
}

TEST(WaitPlan, NeverAsksAtOrPastTheEndAndOnceJustBeforeIt) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Deadline end = start + 700ms;
    WaitPlan plan(no_queue(seed, end));
    Deadline now = start, last = start;
    for (; plan.next(now).step != WaitPlan::Step::give_up; now += pause_of(plan, now)) {
      last = now;
      ASSERT_LT(last, end);
      plan.saw_busy(last, std::nullopt);
    }
    EXPECT_LE(last, end - 20ms);
    EXPECT_GE(last, end - 22ms) << "a lease that frees itself before the deadline must not be missed";
  }
}

TEST(WaitPlan, NothingIsAskedTooNearTheEndForItsAnswer) {
  for (const Pause left : {Pause(22ms), Pause(21ms), Pause(5ms), Pause(0), Pause(-1h)}) {
    WaitPlan plan(no_queue(9, start + 1h));
    plan.saw_trouble(start + 1h - left);
    EXPECT_EQ(wants(plan, start + 1h - left), "to give up") << left.count();
  }
}

TEST(WaitPlan, SameSeedSamePlanOtherSeedOtherPlan) {
  const auto plan = [](std::uint64_t seed) { return pauses(WaitPlan(patient(seed)), 50, trouble); };
  EXPECT_EQ(plan(1), plan(1));
  std::set<std::vector<Pause>> seen;
  for (std::uint64_t seed = 0; seed < 64; ++seed) EXPECT_TRUE(seen.insert(plan(seed)).second) << seed;
}

}  // namespace
}  // namespace redlease
