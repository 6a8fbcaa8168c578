// What a RenewalPlan makes of answers: early, late, out of order, none.
#include <gtest/gtest.h>

#include "renewal_terms.hpp"

namespace redlease {
namespace {

using namespace testing_support;

TEST(RenewalPlan, AFailureOfAnOtherThanTheOneInFlightMeansNothing) {
  RenewalPlan plan = fresh(terms());
  const auto first = plan.sent(start + 3s);
  plan.gave_up(start + 4s);
  const auto due = plan.next().at;
  plan.saw_failed(first, start + 4s + 1ms);  // it was given up already
  EXPECT_EQ(plan.next().at, due);
  plan.sent(due);
  plan.saw_failed(first, due + 1ms);
  plan.saw_unsent(first, due + 1ms);
  EXPECT_EQ(plan.next().step, Step::give_up);
  EXPECT_EQ(plan.next().at, due + 1s);
}

TEST(RenewalPlan, WhatWasNotCarriedOutMayGoAgainAtOnce) {
  RenewalPlan plan = fresh(terms());
  plan.saw_unsent(plan.sent(start + 3s), start + 3s + 5ms);
  EXPECT_EQ(plan.next().step, Step::renew);
  EXPECT_EQ(plan.next().at, start + 3s + 5ms);
}

TEST(RenewalPlan, AnAnswerCountsFromBeforeItsRequestLeftLessTheMargin) {
  const KeepTerms t = terms();
  RenewalPlan plan = fresh(t);
  ASSERT_TRUE(plan.saw_renewed(plan.sent(start + 3s), start + 3s + 1ms, start + 3s + 900ms));
  EXPECT_EQ(plan.deadline(), start + 13s + 1ms - t.margin);
  EXPECT_EQ(plan.margin(), t.margin);
  EXPECT_EQ(plan.next().step, Step::renew);
  EXPECT_GE(plan.next().at, start + 6s);
}

TEST(RenewalPlan, AnAnswerAtOrAfterTheDeadlineDoesNotCount) {
  for (const Span late : {Span(0), Span(1ns), Span(1h)}) {
    RenewalPlan plan = fresh(terms());
    const Deadline end = plan.deadline();
    const auto number = plan.sent(end - 1ms);
    EXPECT_FALSE(plan.saw_renewed(number, end - 1ms, end + late));
    EXPECT_FALSE(plan.saw_not_ours(number, LossCause::gone, end + late)) << "the deadline was first";
    EXPECT_EQ(plan.deadline(), end);
    EXPECT_EQ(plan.next().step, Step::lose);
  }
  RenewalPlan plan = fresh(terms());
  EXPECT_TRUE(plan.saw_renewed(plan.sent(start + 9s), start + 9s, plan.deadline() - 1ns));
}

TEST(RenewalPlan, AnAnswerCountsAlsoWhenItWasGivenUp) {
  RenewalPlan plan = fresh(terms());
  const auto number = plan.sent(start + 3s);
  plan.gave_up(start + 4s);
  EXPECT_TRUE(plan.saw_renewed(number, start + 3s, start + 4s + 1ms));
  EXPECT_EQ(plan.deadline(), full(terms(), start + 3s));
  EXPECT_GE(plan.next().at, start + 6s) << "no hurry any more";
}

TEST(RenewalPlan, AnAnswerOlderThanTheNewestDoesNotCount) {
  RenewalPlan plan = fresh(terms());
  const auto first = plan.sent(start + 3s);
  plan.gave_up(start + 4s);
  const auto second = plan.sent(start + 5s);
  ASSERT_TRUE(plan.saw_renewed(second, start + 5s, start + 5s + 1ms));
  const auto next = plan.next().at;
  EXPECT_FALSE(plan.saw_renewed(first, start + 3s, start + 6s));
  EXPECT_FALSE(plan.saw_renewed(second, start + 5s, start + 6s)) << "nor the same twice";
  EXPECT_FALSE(plan.saw_not_ours(first, LossCause::gone, start + 6s));
  EXPECT_EQ(plan.deadline(), full(terms(), start + 5s));
  EXPECT_EQ(plan.next().at, next);
  EXPECT_FALSE(plan.loss());
}

TEST(RenewalPlan, AnOlderAnswerThatComesFirstCountsAndTheNewerOneIsStillWaitedFor) {
  RenewalPlan plan = fresh(terms());
  const auto first = plan.sent(start + 3s);
  plan.gave_up(start + 4s);
  const auto second = plan.sent(start + 5s);
  ASSERT_TRUE(plan.saw_renewed(first, start + 3s, start + 5s + 1ms));
  EXPECT_EQ(plan.deadline(), full(terms(), start + 3s));
  EXPECT_EQ(plan.next().step, Step::give_up);
  EXPECT_EQ(plan.next().at, start + 6s);
  ASSERT_TRUE(plan.saw_renewed(second, start + 5s, start + 5s + 2ms));
  EXPECT_EQ(plan.deadline(), full(terms(), start + 5s));
}

TEST(RenewalPlan, NotYoursIsLossAtOnce) {
  for (const LossCause cause : {LossCause::gone, LossCause::taken}) {
    RenewalPlan plan = fresh(terms());
    const auto first = plan.sent(start + 3s);
    EXPECT_TRUE(plan.saw_not_ours(first, cause, start + 3s + 1ms));
    EXPECT_EQ(plan.loss(), cause);
    EXPECT_EQ(plan.next().step, Step::nothing);
    EXPECT_FALSE(plan.saw_not_ours(first, LossCause::gone, start + 3s + 1ms)) << "no news";
    plan.lost();
    EXPECT_EQ(plan.loss(), cause) << "the first cause stays";
  }
}

TEST(RenewalPlan, TheDeadlineIsLossWithoutAnybodysAnswer) {
  RenewalPlan plan = fresh(terms());
  plan.sent(start + 9s + 500ms);
  EXPECT_EQ(plan.next().step, Step::lose) << "though a renewal is on its way";
  EXPECT_EQ(plan.next().at, full(terms()));
  plan.lost();
  EXPECT_EQ(plan.loss(), LossCause::deadline);
}

TEST(RenewalPlan, ALostOrEndedLeaseStaysSo) {
  for (const bool lost : {true, false}) {
    RenewalPlan plan = fresh(terms());
    const auto number = plan.sent(start + 3s);
    lost ? plan.lost() : plan.end();
    const Deadline end = plan.deadline();
    EXPECT_FALSE(plan.saw_renewed(number, start + 3s, start + 3s + 1ms));
    EXPECT_FALSE(plan.saw_not_ours(number, LossCause::gone, start + 3s + 1ms));
    plan.saw_failed(number, start + 4s);
    plan.saw_unsent(number, start + 4s);
    plan.gave_up(start + 4s);
    plan.asked();
    EXPECT_EQ(plan.next().step, Step::nothing);
    EXPECT_EQ(plan.next().at, Deadline::max());
    EXPECT_EQ(plan.signal().step, Step::nothing);
    EXPECT_EQ(plan.deadline(), end);
    plan.lost();
    EXPECT_EQ(plan.loss().has_value(), lost) << "what was released is not lost afterwards";
  }
}

TEST(RenewalPlan, ALongerLeaseThatIsTakenOverIsRenewedInItsOwnTimeAndThenCountsByTheNewTtl) {
  const KeepTerms t = terms();
  const Deadline long_after = start + 10min;
  RenewalPlan plan(t, long_after, 1);
  EXPECT_EQ(plan.deadline(), long_after);
  const Deadline due = plan.next().at;
  EXPECT_GE(due, long_after - t.ttl);
  EXPECT_LT(due, long_after - 6s);
  ASSERT_TRUE(plan.saw_renewed(plan.sent(start + 1s), start + 1s, start + 1s));  // asked for early
  EXPECT_EQ(plan.deadline(), full(t, start + 1s));
}

TEST(RenewalPlan, AShorterLeaseThatIsTakenOverIsRenewedAtOnce) {
  RenewalPlan plan(terms(), start + 1s, 1);
  EXPECT_EQ(plan.deadline(), start + 1s);
  EXPECT_EQ(plan.next().step, Step::renew);
  EXPECT_LT(plan.next().at, start);
}

}  // namespace
}  // namespace redlease
