#include "cli/changes.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tool/looks.hpp"

namespace redlease::cli {
namespace {

LeaseInfo held(const std::string& holder, std::uint64_t fence, Millis remaining) {
  return held_by(holder, fence, Millis(5), remaining);
}

std::string told(const LeaseInfo* before, const LeaseInfo& now, Millis elapsed = Millis(1'000)) {
  std::string out;
  for (const Change& change : changes(before, now, elapsed)) {
    out += std::string(name_of(change.event)) + " " + change.holder->holder;
    if (change.before != nullptr) out += " from " + change.before->holder;
    out += "; ";
  }
  return out;
}

const LeaseInfo free_key{};

TEST(Changes, WhatIsThereAtFirstIsHeldAndWhatComesLaterAcquired) {
  const auto a = held("a:1", 7, Millis(30'000));
  EXPECT_EQ(told(nullptr, a), "held a:1; ");
  EXPECT_EQ(told(&free_key, a), "acquired a:1; ");
  EXPECT_EQ(told(nullptr, free_key), "");
  EXPECT_EQ(told(&free_key, free_key), "");
}

TEST(Changes, ARenewalIsNone) {
  const auto before = held("a:1", 7, Millis(10)), now = held("a:1", 7, Millis(30'000));
  EXPECT_EQ(told(&before, now), "");
}

TEST(Changes, WhatEndsBeforeItsTimeWasReleasedElseItExpired) {
  const auto a = held("a:1", 7, Millis(1'001));
  EXPECT_EQ(told(&a, free_key), "released a:1; ");
  EXPECT_EQ(told(&a, free_key, Millis(1'001)), "expired a:1; ");
}

TEST(Changes, AnotherGrantIsAHandOverUnlessTheTimeOfTheFirstWasOver) {
  const auto a = held("a:1", 7, Millis(1'001)), b = held("b:2", 8, Millis(30'000)), again = held("a:1", 9, Millis(5));
  EXPECT_EQ(told(&a, b), "handed_over b:2 from a:1; ");
  EXPECT_EQ(told(&a, again), "handed_over a:1 from a:1; ");
  EXPECT_EQ(told(&a, b, Millis(2'000)), "expired a:1; acquired b:2; ");
}

TEST(Changes, AForeignHolderIsOneAsLongAsItStays) {
  LeaseInfo foreign = held_by_another(Millis(30'000));
  EXPECT_EQ(told(&foreign, foreign), "");
  const auto a = held("a:1", 7, Millis(30'000));
  EXPECT_EQ(told(&a, foreign), "handed_over  from a:1; ");
  foreign.remaining.reset();
  EXPECT_EQ(told(&foreign, free_key, Millis(100'000'000)), "released ; ");
}

TEST(Changes, AnotherNumberOfWaitersIsTold) {
  auto a = held("a:1", 7, Millis(30'000)), more = a;
  more.waiters = 2;
  EXPECT_EQ(told(&a, more), "waiting a:1; ");
  EXPECT_EQ(told(&more, a), "waiting a:1; ");
  EXPECT_EQ(told(nullptr, more), "held a:1; waiting a:1; ");
}

}  // namespace
}  // namespace redlease::cli
