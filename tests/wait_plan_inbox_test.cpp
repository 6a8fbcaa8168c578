// When a waiter wants an inbox, and how it asks with and without.
#include <gtest/gtest.h>

#include "wait_terms.hpp"

namespace redlease {
namespace {

using namespace testing_support;

constexpr Deadline start = wait_start;

// In line, and then told twice that its inbox is not heard.
WaitPlan reserving(const WaitPlan::Terms& terms) {
  WaitPlan plan = in_line(terms);
  WaitPlan::Place unheard = place_at({});
  unheard.heard = false;
  plan.saw_queued(start, unheard);
  plan.saw_inbox(start);
  plan.saw_queued(start, unheard);
  return plan;
}

TEST(WaitPlan, WantsAnInboxOnlyWhenAnotherHoldsItAndOnlyWhereThereIsAQueue) {
  for (const bool queue : {true, false}) {
    WaitPlan::Terms terms = patient();
    terms.queue = queue;
    WaitPlan plan(terms);
    plan.saw_trouble(start);
    EXPECT_EQ(wants(plan, start), "to listen") << "nobody knows yet whether it is held";
    EXPECT_FALSE(plan.in_queue());
    plan.saw_busy(start, 1h);
    EXPECT_EQ(wants(plan, start), queue ? "an inbox" : "to listen");
    EXPECT_FALSE(plan.in_queue());
  }
}

TEST(WaitPlan, AsksForAPlaceAtOnceWhenItHasGotItsInbox) {
  WaitPlan plan(patient());
  plan.saw_busy(start, 1h);
  plan.saw_inbox(start + 1ms);
  EXPECT_EQ(wants(plan, start + 1ms), "to ask for a place");
  plan.saw_queued(start + 2ms, place_at(1ms));
  EXPECT_EQ(wants(plan, start + 2ms), "to listen");
  EXPECT_TRUE(plan.in_queue());
}

TEST(WaitPlan, AsksForAPlaceInItsFirstQuestionWhenAnInboxIsAtHand) {
  WaitPlan::Terms terms = patient();
  terms.inbox = true;
  WaitPlan plan(terms);
  EXPECT_EQ(wants(plan, start), "to ask for a place");
  plan.saw_trouble(start);
  EXPECT_TRUE(plan.in_queue()) << "it may have got one";
}

TEST(WaitPlan, WhatMayHaveAPlaceKeepsAskingForItThoughItsInboxIsLost) {
  WaitPlan::Terms terms = patient();
  terms.inbox = true;
  WaitPlan plan(terms);
  plan.saw_trouble(start);
  plan.saw_no_inbox(start);
  EXPECT_EQ(wants(plan, start), "an inbox");
  plan.saw_no_inbox(start);
  EXPECT_EQ(wants(plan, start), "to ask for a place");
}

TEST(WaitPlan, ALostInboxIsGotAgainBeforeItAsksAndThenItAsksAtOnce) {
  WaitPlan plan = in_line(patient());
  const Deadline due = start + 2s;
  plan.saw_no_inbox(due);
  EXPECT_EQ(wants(plan, due), "an inbox");
  plan.saw_inbox(due + 1ms);
  EXPECT_EQ(wants(plan, due + 1ms), "to ask for a place");
  EXPECT_TRUE(plan.in_queue());
}

TEST(WaitPlan, EachTimeThatNoInboxCanBeHadItAsksAndTriesAgainLater) {
  WaitPlan plan = in_line(patient());
  plan.saw_no_inbox(start);
  plan.saw_no_inbox(start);
  EXPECT_EQ(wants(plan, start), "to ask for a place") << "what was announced meanwhile was not heard";
  plan.saw_queued(start, place_at({}));
  EXPECT_EQ(wants(plan, start), "to listen");
  const LeaseClock::duration pause = pause_of(plan, start);
  EXPECT_GE(pause, 7ms);
  EXPECT_LE(pause, 13ms);
  EXPECT_EQ(wants(plan, start + pause), "an inbox");
}

TEST(WaitPlan, WhereNoInboxCanBeHadPausesGrowThoughItsQuestionsAreAnswered) {
  WaitPlan plan = in_line(patient());
  plan.saw_no_inbox(start);
  int asked = 0;
  for (Deadline now = start; now < start + 2s; now += pause_of(plan, now)) {
    if (wants(plan, now) == "an inbox") plan.saw_no_inbox(now);
    if (plan.next(now).step != WaitPlan::Step::ask) continue;
    ++asked;
    plan.saw_queued(now, place_at(now - start));
  }
  EXPECT_GE(asked, 10);
  EXPECT_LE(asked, 20);
}

TEST(WaitPlan, WhereNoInboxCanBeHadForAHeartbeatItsTurnIsToBeKept) {
  WaitPlan plan = in_line(patient());
  plan.saw_no_inbox(start);
  plan.saw_no_inbox(start + 1s);
  plan.saw_no_inbox(start + 2'999ms);
  EXPECT_EQ(wants(plan, start + 3s), "to ask for a place");
  plan.saw_no_inbox(start + 3s);
  EXPECT_EQ(wants(plan, start + 3s), "to ask for its turn to be kept");
}

TEST(WaitPlan, AnInboxThatIsHadInBetweenBeginsTheHeartbeatAnew) {
  WaitPlan plan = in_line(patient());
  for (int i = 0; i < 10; ++i) {
    const Deadline now = start + i * 1s;
    plan.saw_no_inbox(now);
    plan.saw_no_inbox(now);
    EXPECT_EQ(wants(plan, now), "to ask for a place");
    plan.saw_inbox(now);
    plan.saw_queued(now, place_at(now - start));
  }
}

TEST(WaitPlan, WhatCouldNotBeHadForAHeartbeatIsTriedForAgainAfterSix) {
  WaitPlan plan = in_line(patient());
  for (const auto after : {0s, 0s, 2s}) plan.saw_no_inbox(start + after);
  for (const auto after : {14s, 26s}) {
    plan.saw_queued(start + after - 1ms, place_at({}));
    EXPECT_EQ(pause_of(plan, start + after - 1ms), 1ms);
    EXPECT_EQ(wants(plan, start + after), "an inbox");
    plan.saw_no_inbox(start + after);
  }
  plan.saw_inbox(start + 38s);
  EXPECT_EQ(wants(plan, start + 38s), "to ask for a place");
}

TEST(WaitPlan, WhereThereIsToBeNoInboxItsTurnIsToBeKeptFromTheFirstPlaceOn) {
  WaitPlan plan(patient());
  plan.saw_busy(start, 1h);
  plan.saw_inbox_refused(start);
  EXPECT_EQ(wants(plan, start), "to ask for its turn to be kept");
  plan.saw_queued(start, place_at({}, 1h, 5));
  for (Deadline now = start; now < start + 1min; now += pause_of(plan, now)) {
    ASSERT_NE(wants(plan, now), "an inbox");
    plan.saw_queued(now, place_at(now - start, 1h, 5));
  }
}

TEST(WaitPlan, AnInboxThatIsNotHeardIsReplacedOnceAndThenDoneWithout) {
  WaitPlan plan = in_line(patient());
  WaitPlan::Place unheard = place_at({});
  unheard.heard = false;
  plan.saw_queued(start, unheard);
  EXPECT_EQ(wants(plan, start), "an inbox");
  EXPECT_TRUE(plan.in_queue());
  plan.saw_inbox(start);
  EXPECT_EQ(wants(plan, start), "to ask for a place");
  plan.saw_queued(start, unheard);
  EXPECT_EQ(wants(plan, start), "to ask for its turn to be kept");
  plan.saw_queued(start, unheard);
  EXPECT_EQ(wants(plan, start), "to listen") << "it was to be without";
}

TEST(WaitPlan, AnInboxThatIsHeardInBetweenIsReplacedAgain) {
  WaitPlan plan = in_line(patient());
  WaitPlan::Place unheard = place_at({});
  unheard.heard = false;
  for (int i = 0; i < 5; ++i) {
    plan.saw_queued(start, unheard);
    EXPECT_EQ(wants(plan, start), "an inbox");
    plan.saw_inbox(start);
    plan.saw_queued(start, place_at({}));
    EXPECT_EQ(wants(plan, start), "to listen");
  }
}

TEST(WaitPlan, WhatIsDoneWithoutAnInboxIsNotLostWithIt) {
  WaitPlan plan = reserving(patient());
  plan.saw_no_inbox(start);
  EXPECT_EQ(wants(plan, start), "to ask for its turn to be kept");
  plan.saw_queued(start, place_at({}, 1h, 1));
  EXPECT_EQ(wants(plan, start), "to listen");
}

TEST(WaitPlan, WithoutAnInboxTheFirstInLineAsksUpToEvery250MsAndLessSoonEachTime) {
  WaitPlan plan = reserving(patient());
  LeaseClock::duration shortest = 1h, longest{}, last{};
  Deadline now = start;
  for (int i = 0; i < 200; ++i, now += last) {
    ASSERT_EQ(wants(plan, now), "to ask for its turn to be kept");
    plan.saw_queued(now, place_at(now - start));
    last = pause_of(plan, now);
    shortest = std::min(shortest, last);
    longest = std::max(longest, last);
  }
  EXPECT_LE(shortest, 13ms);
  EXPECT_GT(longest, 240ms);
  EXPECT_LE(longest, 250ms);
  EXPECT_GE(last, 150ms);
}

TEST(WaitPlan, WithoutAnInboxThoseBehindOnlyShowThatTheyLiveAndAskOftenOnceTheyAreFirst) {
  WaitPlan plan = reserving(patient());
  for (int i = 0; i < 20; ++i) plan.saw_queued(start, place_at({}));
  plan.saw_queued(start, place_at({}, 1h, 1));
  EXPECT_GE(pause_of(plan, start), 1'800ms);
  EXPECT_LT(pause_of(plan, start), 2s);
  plan.saw_queued(start, place_at({}));
  EXPECT_LE(pause_of(plan, start), 13ms);
}

TEST(WaitPlan, AHintIsAReasonToAskAtOnce) {
  WaitPlan plan = in_line(patient());
  EXPECT_EQ(wants(plan, start + 1ms), "to listen");
  plan.saw_hint(start + 1ms);
  EXPECT_EQ(wants(plan, start + 1ms), "to ask for a place");
}

}  // namespace
}  // namespace redlease
