// When a RenewalPlan renews, asks and loses.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "renewal_terms.hpp"

namespace redlease {
namespace {

using namespace testing_support;

// Everything fails from now on: each step when it is due, until the lease is lost.
struct Course {
  std::vector<Deadline> renewals;
  Deadline asked{}, lost{};
};
Course fail_on(RenewalPlan plan) {
  Course course;
  Deadline now = start;
  int steps = 0;
  for (auto next = plan.next(); next.step != Step::nothing; next = plan.next()) {
    now = std::max(now, next.at);
    switch (next.step) {
      case Step::renew:
        course.renewals.push_back(now);
        plan.sent(now);
        break;
      case Step::give_up: plan.gave_up(now); break;
      case Step::ask_to_stop:
        course.asked = now;
        plan.asked();
        break;
      default: course.lost = now; plan.lost();
    }
    if (++steps > 1'000) {
      ADD_FAILURE() << "it does not end";
      break;
    }
  }
  return course;
}

TEST(RenewalPlan, FirstRenewalComesAThirdOfTheTtlAfterGiveOrTakeTenPercent) {
  for (const Millis ttl : {10ms, 50ms, 10'000ms, 86'400'000ms}) {
    double sum = 0;
    Span low = Span::max(), high{};
    for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
      const auto next = fresh(terms(ttl), seed * 0x9E37'79B9'7F4A'7C15).next();
      ASSERT_EQ(next.step, Step::renew);
      const Span after = next.at - start;
      low = std::min(low, after);
      high = std::max(high, after);
      sum += static_cast<double>(after.count()) / static_cast<double>(Span(ttl).count());
    }
    EXPECT_GE(low, Span(ttl) * 30 / 100);
    EXPECT_LE(high, Span(ttl) * 367 / 1'000);
    EXPECT_LT(low, Span(ttl) * 302 / 1'000) << "the jitter fills its range";
    EXPECT_GT(high, Span(ttl) * 364 / 1'000);
    EXPECT_NEAR(sum / 10'000, 1.0 / 3, 0.001);
  }
}

TEST(RenewalPlan, EveryRenewalIsJitteredAnew) {
  RenewalPlan plan = fresh(terms(1s));
  Deadline from = start;
  std::set<Span> seen;
  for (int i = 0; i < 1'000; ++i) {
    const auto next = plan.next();
    ASSERT_EQ(next.step, Step::renew);
    ASSERT_GE(next.at - from, 300ms);
    ASSERT_LE(next.at - from, 367ms);
    seen.insert(next.at - from);
    from = next.at;
    ASSERT_TRUE(plan.saw_renewed(plan.sent(from), from, from + 1ms));
    ASSERT_EQ(plan.deadline(), full(terms(1s), from));
  }
  EXPECT_GT(seen.size(), 500U);
}

TEST(RenewalPlan, SameSeedSameCourse) {
  EXPECT_EQ(fail_on(fresh(terms(), 7)).renewals, fail_on(fresh(terms(), 7)).renewals);
  EXPECT_NE(fail_on(fresh(terms(), 7)).renewals, fail_on(fresh(terms(), 8)).renewals);
}

TEST(RenewalPlan, FirstRenewalComesBeforeTheWorkIsAskedToStopHoweverLittleIsLeft) {
  for (const Millis ttl : {10ms, 16ms, 40ms, 10'000ms}) {
    for (const int percent : {0, 1, 20, 30}) {
      for (std::uint64_t seed = 0; seed < 200; ++seed) {
        KeepTerms t = terms(ttl);
        t.margin = Span(ttl) * percent / 100 + 2ms;
        const Span left = ttl - t.margin - Span(ttl) / 9;
        if (left < Span(1ms)) continue;
        t.stop_before = std::min(ttl / 2, std::chrono::floor<Millis>(left));
        EXPECT_EQ(fresh(t, seed).next().step, Step::renew) << ttl.count() << " ms, " << percent << " %";
        t.stop_before = 0ms;
        EXPECT_EQ(fresh(t, seed).next().step, Step::renew) << ttl.count() << " ms, " << percent << " %";
      }
    }
  }
}

TEST(RenewalPlan, WhereNothingIsLeftForTheWorkItIsAskedAtOnceAndRenewingDoesNotSpin) {
  for (const Span margin : {6'900us, 4'900us}) {  // of a drift of 0.49 and of 0.29
    KeepTerms t = terms(10ms);
    t.margin = margin;
    t.stop_before = 5ms;
    RenewalPlan plan = fresh(t);
    EXPECT_EQ(plan.next().step, Step::ask_to_stop);
    EXPECT_LT(plan.next().at, start + 1ms);
    plan.asked();
    Deadline from = start;
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(plan.next().step, Step::renew);
      const Deadline now = std::max(plan.next().at, from);
      ASSERT_TRUE(plan.saw_renewed(plan.sent(now), now, now));
      from = now;
    }
    EXPECT_GT(from - start, 150ms);
  }
}

TEST(RenewalPlan, AFailedRenewalIsTriedAgainSoonThenLessSoonBeforeTheDeadline) {
  for (const Millis ttl : {10ms, 30ms, 1'000ms, 86'400'000ms}) {
    KeepTerms t = terms(ttl);
    RenewalPlan plan = fresh(t);
    std::vector<Span> pauses;
    Deadline now = plan.next().at;
    while (plan.next().step == Step::renew) {
      now = plan.next().at;
      ASSERT_LT(now, full(t));
      plan.saw_failed(plan.sent(now), now);  // refused at once
      if (plan.next().step == Step::renew) pauses.push_back(plan.next().at - now);
    }
    ASSERT_GE(pauses.size(), 3U) << ttl.count();
    EXPECT_GE(pauses[0], std::max<Span>(Span(ttl) * 22 / 1'000, 300us));
    EXPECT_LE(pauses[0], std::max<Span>(Span(ttl) * 28 / 1'000, 300us));
    if (ttl < 1'000ms) continue;
    EXPECT_GT(pauses[1], pauses[0]);
    EXPECT_GT(pauses[2], pauses[1]);
    EXPECT_LE(*std::ranges::max_element(pauses), Span(ttl) * 22 / 100);
    EXPECT_GT(now, plan.deadline() - 2ms) << "the last try is made as late as it is of use";
    EXPECT_LT(pauses.size(), 40U);
  }
}

TEST(RenewalPlan, AnUnansweredRenewalIsGivenUpAfterOpTimeoutAndTriedAgainBeforeTheDeadline) {
  for (const Millis ttl : {10ms, 20ms, 30'000ms, 86'400'000ms}) {
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
      RenewalPlan plan = fresh(terms(ttl), seed);
      const Deadline sent = plan.next().at;
      plan.sent(sent);
      ASSERT_EQ(plan.next().step, Step::give_up);
      ASSERT_EQ(plan.next().at, sent + plan.op_timeout());
      plan.gave_up(sent + plan.op_timeout());
      ASSERT_EQ(plan.next().step, Step::renew) << ttl.count();
      ASSERT_GT(plan.next().at, sent + plan.op_timeout());
      ASSERT_LT(plan.next().at, plan.deadline());
      const Course course = fail_on(fresh(terms(ttl), seed));
      ASSERT_GE(course.renewals.size(), 2U);
      ASSERT_LT(course.renewals.back(), plan.deadline());
      ASSERT_EQ(course.lost, plan.deadline());
    }
  }
}

TEST(RenewalPlan, AFailureMovesNoDeadline) {
  RenewalPlan plan = fresh(terms());
  for (int i = 0; i < 10; ++i) {
    plan.saw_failed(plan.sent(start + 3s), start + 4s);
    EXPECT_EQ(plan.deadline(), full(terms()));
    plan.sent(start + 4s);
    plan.gave_up(start + 5s);
    EXPECT_EQ(plan.deadline(), full(terms()));
  }
}

TEST(RenewalPlan, AFailureShortlyBeforeTheDeadlineIsNotTriedAgainAndLosesOnTime) {
  for (const Span left : {Span(599us), Span(1ns), Span(0), Span(-1s)}) {
    RenewalPlan plan = fresh(terms());
    plan.saw_failed(plan.sent(start + 9s), plan.deadline() - left);
    EXPECT_EQ(plan.next().step, Step::lose);
    EXPECT_EQ(plan.next().at, full(terms()));
  }
  RenewalPlan plan = fresh(terms());
  plan.saw_failed(plan.sent(start + 9s), plan.deadline() - 10ms);
  EXPECT_EQ(plan.next().step, Step::renew);
  EXPECT_EQ(plan.next().at, plan.deadline() - 5ms);
}

TEST(RenewalPlan, OfASuccessAfterFailuresThePausesBeginAnew) {
  RenewalPlan plan = fresh(terms());
  for (int i = 0; i < 3; ++i) plan.saw_failed(plan.sent(start + 4s), start + 4s);
  ASSERT_TRUE(plan.saw_renewed(plan.sent(start + 5s), start + 5s, start + 5s));
  plan.saw_failed(plan.sent(start + 8s), start + 8s);
  EXPECT_LE(plan.next().at, start + 8s + 275ms);
}

TEST(RenewalPlan, NoDeadlineLiesBehindTheCap) {
  KeepTerms t = terms();
  t.cap = start + 15s;
  RenewalPlan plan = fresh(t);
  EXPECT_EQ(plan.deadline(), full(t));
  ASSERT_TRUE(plan.saw_renewed(plan.sent(start + 4s), start + 4s, start + 4s));
  EXPECT_EQ(plan.deadline(), full(t, start + 4s));
  ASSERT_TRUE(plan.saw_renewed(plan.sent(start + 8s), start + 8s, start + 8s));
  EXPECT_EQ(plan.deadline(), t.cap);
  EXPECT_EQ(plan.next().step, Step::lose) << "nothing is renewed any more";
  EXPECT_EQ(plan.next().at, t.cap);
  plan.lost();
  EXPECT_EQ(plan.loss(), LossCause::max_hold);
}

TEST(RenewalPlan, ACapBeforeTheFirstDeadlineCutsItAndNothingIsRenewed) {
  for (const Span cap : {Span(5s), Span(1ns), Span(0), Span(-1s)}) {
    KeepTerms t = terms();
    t.cap = start + cap;
    for (RenewalPlan plan : {fresh(t), RenewalPlan(t, Deadline::max(), 1)}) {
      EXPECT_EQ(plan.next().step, Step::lose);
      EXPECT_EQ(plan.next().at, t.cap);
      plan.lost();
      EXPECT_EQ(plan.loss(), LossCause::max_hold);
    }
  }
}

TEST(RenewalPlan, AtTheCapNothingIsRenewedEvenIfAnotherRenewalFailsAfterwards) {
  for (const bool unsent : {true, false}) {
    KeepTerms t = terms();
    t.cap = start + 12s;
    RenewalPlan plan = fresh(t);
    const auto first = plan.sent(start + 4s);
    plan.gave_up(start + 5s);
    const auto second = plan.sent(start + 5s);
    ASSERT_TRUE(plan.saw_renewed(first, start + 4s, start + 5s + 1ms));
    ASSERT_EQ(plan.deadline(), t.cap);
    unsent ? plan.saw_unsent(second, start + 5s + 2ms) : (void)plan.saw_failed(second, start + 5s + 2ms);
    EXPECT_EQ(plan.next().step, Step::lose);
  }
}

TEST(RenewalPlan, TheWorkIsAskedToStopThatLongBeforeTheDeadlineAndTheLeaseStillKept) {
  KeepTerms t = terms();
  t.stop_before = 5s;  // half of the ttl, the most there may be
  const Course course = fail_on(fresh(t));
  EXPECT_EQ(course.asked, full(t) - 5s);
  EXPECT_EQ(course.lost, full(t));
  EXPECT_GT(course.renewals.back(), course.asked) << "it is still tried";

  RenewalPlan plan = fresh(t);
  EXPECT_EQ(plan.signal().step, Step::ask_to_stop);
  plan.asked();
  ASSERT_TRUE(plan.saw_renewed(plan.sent(start + 5s), start + 5s, start + 5s));
  EXPECT_EQ(plan.next().step, Step::renew);
  EXPECT_EQ(plan.signal().step, Step::lose) << "asked once";
  EXPECT_EQ(plan.signal().at, full(t, start + 5s));
}

TEST(RenewalPlan, ARenewalMovesTheAskingAsItMovesTheDeadline) {
  KeepTerms t = terms();
  t.stop_before = 2s;
  RenewalPlan plan = fresh(t);
  ASSERT_TRUE(plan.saw_renewed(plan.sent(start + 3s), start + 3s, start + 4s));
  EXPECT_EQ(plan.signal().step, Step::ask_to_stop);
  EXPECT_EQ(plan.signal().at, full(t, start + 3s) - 2s);
}

TEST(RenewalPlan, WithoutRenewingTheDeadlineIsOnlyWatched) {
  KeepTerms t = terms();
  t.renew = false;
  t.stop_before = 1s;
  const Course course = fail_on(fresh(t));
  EXPECT_TRUE(course.renewals.empty());
  EXPECT_EQ(course.asked, full(t) - 1s);
  EXPECT_EQ(course.lost, full(t));
}

}  // namespace
}  // namespace redlease
