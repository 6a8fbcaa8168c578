#pragma once
// Part of store_suite.hpp: keeping a lease, giving it back, handing it over, looking at it.
#include "store_suite_fixture.hpp"

namespace redlease {

TYPED_TEST_P(LeaseStoreSuite, RenewalLengthensAndCountsFromBeforeTheCall) {
  this->grant("a", this->minute);
  for (int i = 0; i < 10; ++i) {
    const Deadline before = this->world.now();
    const Renewal renewal = this->renew("a", this->hour);
    const Deadline after = this->world.now();
    ASSERT_EQ(to_string(renewal.outcome), "renewed") << renewal.error.detail;
    EXPECT_GE(renewal.counted_from, before);
    EXPECT_LE(renewal.counted_from, after);
  }
  EXPECT_GT(this->remaining(), this->hour - this->minute);
  EXPECT_LE(this->remaining(), this->hour) << "renewals are not added up";
}

TYPED_TEST_P(LeaseStoreSuite, RenewalNeverShortens) {
  this->grant("a", this->hour);
  EXPECT_EQ(to_string(this->renew("a", this->minute).outcome), "renewed");
  EXPECT_GT(this->remaining(), this->hour - this->minute);
}

TYPED_TEST_P(LeaseStoreSuite, RenewalNeverCreatesAndTellsGoneFromTaken) {
  this->expect_lost(this->renew("a"), LossCause::gone);
  EXPECT_FALSE(this->inspect().held);
  this->grant("b", this->minute);
  this->expect_lost(this->renew("a"), LossCause::taken);
  EXPECT_LE(this->remaining(), this->minute) << "another's lease was lengthened";
  this->expect_released("b");
  this->expect_lost(this->renew("b"), LossCause::gone);
  EXPECT_FALSE(this->inspect().held);
}

TYPED_TEST_P(LeaseStoreSuite, ALateRenewalDoesNotRevive) {
  this->grant("a", this->brief);
  this->world.advance(this->past_brief);
  this->expect_lost(this->renew("a"), LossCause::gone);
  this->grant("b");
  this->expect_lost(this->renew("a"), LossCause::taken);
  this->expect_not_held(this->release("a"), LossCause::taken);
  EXPECT_EQ(to_string(this->renew("b").outcome), "renewed");
}

TYPED_TEST_P(LeaseStoreSuite, AReleasedLeaseFreesTheKey) {
  this->grant("a");
  this->expect_released("a");
  EXPECT_FALSE(this->inspect().held);
  this->grant("b");
}

TYPED_TEST_P(LeaseStoreSuite, AReleaseWithAnotherTokenLeavesTheKey) {
  this->grant("a");
  this->expect_not_held(this->release("b"), LossCause::taken);
  EXPECT_TRUE(this->inspect().held);
  EXPECT_EQ(to_string(this->renew("a").outcome), "renewed");
}

TYPED_TEST_P(LeaseStoreSuite, AReleaseTellsGoneFromTaken) {
  this->expect_not_held(this->release("a"), LossCause::gone);
  this->grant("a");
  this->expect_released("a");
  this->expect_not_held(this->release("a"), LossCause::gone);
  this->grant("a", this->brief);
  this->world.advance(this->past_brief);
  this->expect_not_held(this->release("a"), LossCause::gone);
  this->grant("b");
  this->expect_not_held(this->release("a"), LossCause::taken);
}

TYPED_TEST_P(LeaseStoreSuite, AdoptAnswersTheFenceOfTheGrant) {
  const FencingToken fence = this->grant("a", this->minute);
  const Deadline before = this->world.now();
  const Renewal adopted = this->store.adopt(this->key, "a", this->hour, {});
  ASSERT_EQ(to_string(adopted.outcome), "renewed") << adopted.error.detail;
  EXPECT_EQ(adopted.fence, fence);
  EXPECT_GE(adopted.counted_from, before);
  EXPECT_LE(adopted.counted_from, this->world.now());
  EXPECT_GT(this->remaining(), this->hour - this->minute);
  EXPECT_EQ(this->renew("a").fence, std::nullopt) << "adopt only";
}

TYPED_TEST_P(LeaseStoreSuite, AdoptComparesAsRenewDoes) {
  this->expect_lost(this->store.adopt(this->key, "a", this->hour, {}), LossCause::gone);
  this->grant("b", this->hour);
  this->expect_lost(this->store.adopt(this->key, "a", this->hour, {}), LossCause::taken);
  EXPECT_EQ(to_string(this->store.adopt(this->key, "b", this->minute, {}).outcome), "renewed");
  EXPECT_GT(this->remaining(), this->hour - this->minute) << "adopt must not shorten";
}

TYPED_TEST_P(LeaseStoreSuite, InspectShowsTheHolder) {
  auto request = this->request("a");
  request.label = "nightly run";
  const FencingToken fence = this->granted(this->store.acquire(request, {}));
  this->world.advance(Millis{20});
  const LeaseInfo info = this->inspect();
  EXPECT_TRUE(info.held);
  EXPECT_EQ(info.holder, this->holder);
  EXPECT_EQ(info.label, "nightly run");
  EXPECT_EQ(info.fence, fence);
  ASSERT_TRUE(info.remaining && info.held_for);
  EXPECT_LT(*info.remaining, this->hour);
  EXPECT_GT(*info.remaining, this->hour - this->minute);
  EXPECT_GE(*info.held_for, Millis{15});
  EXPECT_LT(*info.held_for, this->minute);
  EXPECT_EQ(info.waiters, 0U);
  EXPECT_TRUE(info.queue.empty());
}

TYPED_TEST_P(LeaseStoreSuite, InspectOfAFreeKeyShowsNobody) {
  const auto expect_nobody = [&](FencingToken fence) {
    const LeaseInfo info = this->inspect();
    EXPECT_FALSE(info.held);
    EXPECT_EQ(info.holder, "");
    EXPECT_EQ(info.label, "");
    EXPECT_EQ(info.remaining, std::nullopt);
    EXPECT_EQ(info.held_for, std::nullopt);
    EXPECT_EQ(info.fence, fence);
  };
  expect_nobody(FencingToken{0});
  const FencingToken first = this->grant("a");
  this->expect_released("a");
  expect_nobody(first);
  const FencingToken second = this->grant("b", this->brief);
  this->world.advance(this->past_brief);
  expect_nobody(second);
}

TYPED_TEST_P(LeaseStoreSuite, BreakFreesTheKeyForTheNext) {
  EXPECT_FALSE(this->store.break_lease(this->key, {}).value());
  const FencingToken fence = this->grant("a");
  EXPECT_TRUE(this->store.break_lease(this->key, {}).value());
  EXPECT_FALSE(this->store.break_lease(this->key, {}).value());
  EXPECT_EQ(this->inspect().fence, fence) << "what was broken is remembered";
  this->expect_lost(this->renew("a"), LossCause::gone);
  EXPECT_GT(this->grant("b"), fence);
}

}  // namespace redlease
