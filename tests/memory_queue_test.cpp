// The queue of a MemoryStore, waiter by waiter, on a clock that the test moves: whose turn it is.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "memory_queue.hpp"

namespace redlease {
namespace {

using namespace testing_support;

TEST_F(MemoryQueue, AFreeKeyIsGrantedWithoutAWait) {
  release();
  const auto one = seat();
  EXPECT_TRUE(one->has_queue() && one->has_inbox());
  EXPECT_EQ(one->subscribe({}), Seat::Subscribed::yes);
  const auto answer = ask(*one);
  ASSERT_TRUE(std::holds_alternative<Granted>(answer));
  EXPECT_EQ(std::get<Granted>(answer).counted_from, clock.now());
  EXPECT_EQ(info().fence, std::get<Granted>(answer).fence);
  EXPECT_EQ(info().waiters, 0U);
  EXPECT_EQ(one->spent_by(), Deadline::min());
}

TEST_F(MemoryQueue, TellsThePlaceInIt) {
  const auto first = queued(), second = seat();
  clock.advance(20s + 300ns);
  const auto answer = ask(*second);
  const auto& [busy, place] = std::get<Seat::Queued>(answer);
  EXPECT_EQ(busy.holder, "h:2");
  EXPECT_EQ(busy.remaining, 40s);
  EXPECT_EQ(place.remaining, 40s);
  EXPECT_EQ(place.ahead, 1U);
  EXPECT_TRUE(place.heard);
  EXPECT_FALSE(place.foreign);
  EXPECT_EQ(place.sent, clock.now());
  EXPECT_EQ(place.server_time, std::chrono::microseconds(1h + 20s).count());
}

TEST_F(MemoryQueue, EachReleaseHandsOverToTheFirstAndWakesThatOneAlone) {
  std::vector<std::unique_ptr<Seat>> seats;
  for (std::size_t i = 0; i < 5; ++i) {
    seats.push_back(seat());
    EXPECT_EQ(ahead_of(*seats.back()), i);
  }
  EXPECT_EQ(ahead_of(*seats[3]), 3U) << "who asks again keeps its place";
  FencingToken last = info().fence;
  std::string holder = "another";
  for (std::size_t i = 0; i < seats.size(); ++i) {
    for (const auto& one : seats) EXPECT_FALSE(heard(*one));
    clock.advance(10s);
    EXPECT_EQ(release(holder).outcome, ReleaseOutcome::released);
    for (std::size_t j = i + 1; j < seats.size(); ++j) EXPECT_FALSE(heard(*seats[j])) << i << " " << j;
    const auto grant = heard(*seats[i]);
    ASSERT_TRUE(grant);
    EXPECT_GT(grant->fence, last);
    EXPECT_EQ(grant->fence, info().fence);
    EXPECT_EQ(std::chrono::microseconds(grant->server_time), clock.now().time_since_epoch());
    EXPECT_FALSE(heard(*seats[i])) << "told once";
    last = grant->fence;
    holder = seats[i]->token().str();
  }
  EXPECT_EQ(release(holder).outcome, ReleaseOutcome::released);
  EXPECT_TRUE(free_and_nobody_waits());
}

TEST_F(MemoryQueue, TheNextHasItByItsOwnTermsAndName) {
  const FencingToken floor{std::uint64_t{1} << 52};
  const auto one = queued("nightly", 5s, floor);
  release();
  EXPECT_EQ(heard(*one)->fence, FencingToken{(std::uint64_t{1} << 52) + 1});
  EXPECT_EQ(info().remaining, 5s);
  EXPECT_EQ(info().label, "nightly");
  EXPECT_EQ(info().holder, "h:1");
}

TEST_F(MemoryQueue, ATryDoesNotOvertakeIt) {
  const auto one = queued("first");
  clock.advance(1min);  // the lease is over, and nobody has called since
  EXPECT_FALSE(info().held);
  EXPECT_EQ(info().waiters, 1U);
  const auto busy = take("b");
  ASSERT_TRUE(std::holds_alternative<Busy>(busy));
  EXPECT_EQ(std::get<Busy>(busy).holder, "h:1 first");
  EXPECT_TRUE(granted(*one));
  EXPECT_FALSE(takes("b"));
}

TEST_F(MemoryQueue, NorDoesOneThatAsksOnceOrAFencedValue) {
  const auto one = queued(), two = queued();
  clock.advance(1min);
  EXPECT_TRUE(std::holds_alternative<Busy>(ask(*seat(), Ask::once)));
  EXPECT_TRUE(granted(*one));
  clock.advance(1min);
  EXPECT_EQ(store.fenced_set(key, "v", FencingToken{1}, {}).error().code, Errc::not_a_lease);
  EXPECT_TRUE(granted(*two));
}

TEST_F(MemoryQueue, BreakingHandsOverToo) {
  const auto one = queued();
  EXPECT_TRUE(store.break_lease(key, {}).value());
  EXPECT_TRUE(granted(*one));
  EXPECT_EQ(store.renew(key, "another", 1min, {}).cause, LossCause::taken);
}

TEST_F(MemoryQueue, AfterExpiryAnyonesQuestionServesTheFirst) {
  const auto first = queued(), second = queued(), third = queued();
  clock.advance(1min);
  EXPECT_EQ(ahead_of(*second), 0U) << "its question is another's turn";
  EXPECT_TRUE(granted(*first));
  clock.advance(1min);
  EXPECT_TRUE(acquires(*second));
  clock.advance(1min);
  EXPECT_EQ(release(*second).cause, LossCause::gone) << "too late, but it serves the next";
  EXPECT_TRUE(granted(*third));
}

TEST_F(MemoryQueue, AskingFindsAGrantThatWasNotHeardAndMakesItWhole) {
  const auto one = queued();
  release();
  const FencingToken fence = info().fence;
  clock.advance(50s);
  const auto answer = ask(*one);
  ASSERT_TRUE(std::holds_alternative<Granted>(answer));
  EXPECT_EQ(std::get<Granted>(answer).fence, fence);
  EXPECT_EQ(std::get<Granted>(answer).counted_from, clock.now());
  EXPECT_EQ(info().remaining, 1min);
  EXPECT_FALSE(heard(*one));
}

TEST_F(MemoryQueue, WhoSleptThroughItsGrantIsToldToAskAndHasItsPlaceAgain) {
  for (const bool broken : {false, true}) {
    const auto slow = queued(), next = queued(), last = queued();
    (void)store.break_lease(key, {});
    if (broken) {
      (void)store.break_lease(key, {});
    } else {
      clock.advance(1min);
    }
    EXPECT_EQ(ahead_of(*last), 0U) << "the next has it";
    EXPECT_EQ(heard(*slow)->fence, FencingToken{}) << "a hint";
    EXPECT_EQ(ahead_of(*slow), 0U);
    EXPECT_EQ(ahead_of(*last), 1U);
    EXPECT_TRUE(granted(*next));
  }
  const auto slow = queued(), next = queued();
  (void)store.break_lease(key, {});
  clock.advance(1min);
  EXPECT_TRUE(acquires(*slow)) << "first to ask, and still before the next";
}

TEST_F(MemoryQueue, AReservedTurnIsOneToo) {
  const auto one = seat();
  EXPECT_TRUE(std::holds_alternative<Seat::Queued>(ask(*one, Ask::reserve)));
  release();
  EXPECT_TRUE(std::holds_alternative<Granted>(ask(*one, Ask::reserve)));
}

TEST_F(MemoryQueue, InspectShowsWhoWaits) {
  std::vector<std::unique_ptr<Seat>> seats;
  seats.push_back(queued());
  clock.advance(3s + 999us);
  for (int i = 1; i < 120; ++i) {
    seats.push_back(queued("job"));
    (void)ask(*seats.front());
  }
  clock.advance(1s);
  const LeaseInfo seen = info();
  EXPECT_EQ(seen.waiters, 120U);
  ASSERT_EQ(seen.queue.size(), 100U);
  ASSERT_EQ(seen.queued_for.size(), 100U);
  EXPECT_EQ(seen.queue.front(), "h:1");
  EXPECT_EQ(seen.queued_for.front(), 4s) << "since it came, not since it asked";
  EXPECT_EQ(seen.queue.back(), "h:1 job");
  EXPECT_EQ(seen.queued_for.back(), 1s);
}

TEST_F(MemoryQueue, AFreeNameIsNotForgottenWhileSomebodyWaits) {
  const auto one = queued();
  clock.advance(1min);
  for (int i = 0; i < 3'000; ++i) {
    const std::string name = "name-" + std::to_string(i);
    (void)store.acquire({.key = name, .token = "t", .ttl = 1min}, {});
    (void)store.release(name, "t", {});
  }
  EXPECT_EQ(info().waiters, 1U);
  EXPECT_TRUE(acquires(*one));
}

}  // namespace
}  // namespace redlease
