// The queue of a MemoryStore, waiter by waiter: those that leave it, and those that cannot be served.
#include <cstdint>
#include <stop_token>
#include <string>
#include <utility>

#include "in_child.hpp"
#include "memory_queue.hpp"

namespace redlease {
namespace {

using namespace testing_support;

constexpr std::uint64_t highest = (std::uint64_t{1} << 53) - 2;

TEST_F(MemoryQueue, LeavingGivesTheTurnToTheNext) {
  auto first = queued(), second = queued(), third = queued(), fourth = queued();
  EXPECT_EQ(second->leave({}).outcome, ReleaseOutcome::not_held);
  EXPECT_EQ(info().waiters, 3U);
  release();
  EXPECT_EQ(first->leave({}).outcome, ReleaseOutcome::released) << "a grant that crossed";
  EXPECT_EQ(first->leave({}).outcome, ReleaseOutcome::not_held);
  EXPECT_TRUE(granted(*third));
  EXPECT_EQ(third->leave({}).outcome, ReleaseOutcome::released) << "heard, and not wanted";
  EXPECT_EQ(fourth->leave({.deadline = Deadline::min(), .stop = {}}).outcome, ReleaseOutcome::released)
      << "whatever the limits";
  EXPECT_EQ(seat()->leave({}).outcome, ReleaseOutcome::not_held) << "never asked";
  EXPECT_TRUE(free_and_nobody_waits());
}

TEST_F(MemoryQueue, ASeatThatGoesLeavesNothingBehindButALeaseThatWasTaken) {
  auto first = queued(), second = queued(), third = queued();
  second.reset();
  EXPECT_EQ(info().waiters, 2U);
  release();
  first.reset();  // granted and not heard
  EXPECT_TRUE(granted(*third));
  const std::string token = third->token().str();
  third.reset();
  EXPECT_EQ(release(token).outcome, ReleaseOutcome::released) << "it was taken";
  EXPECT_TRUE(free_and_nobody_waits());
  seat().reset();
}

TEST_F(MemoryQueue, TheLastQuestionLeavesIt) {
  for (const Ask how : {Ask::last, Ask::once}) {
    const auto one = queued();
    EXPECT_TRUE(std::holds_alternative<Busy>(ask(*one, how)));
    EXPECT_EQ(info().waiters, 0U);
  }
  const auto one = queued();
  release();
  EXPECT_TRUE(std::holds_alternative<Granted>(ask(*one, Ask::last)));
}

TEST_F(MemoryQueue, AWaiterThatNoFenceIsLeftForIsPassedByAndToldWhy) {
  const auto hopeless = queued({}, 1min, FencingToken{highest}), next = queued();
  release();
  EXPECT_TRUE(granted(*next));
  EXPECT_EQ(heard(*hopeless)->fence, FencingToken{}) << "a hint";
  for (int i = 0; i < 2; ++i) {
    const auto answer = ask(*hopeless);
    ASSERT_TRUE(std::holds_alternative<Error>(answer));
    EXPECT_EQ(std::get<Error>(answer).code, Errc::server_error);
  }
  EXPECT_EQ(hopeless->leave({}).outcome, ReleaseOutcome::not_held);
  EXPECT_EQ(release(*next).outcome, ReleaseOutcome::released);
  EXPECT_TRUE(free_and_nobody_waits());
}

TEST_F(MemoryQueue, AKeyThatIsNoLeaseCannotBeWaitedFor) {
  release();
  ASSERT_TRUE(store.fenced_set(key, "v", FencingToken{1}, {}).value().accepted);
  EXPECT_EQ(std::get<Error>(ask(*seat())).code, Errc::not_a_lease);
}

TEST_F(MemoryQueue, ObeysItsLimits) {
  std::stop_source source;
  source.request_stop();
  const Limits stopped{.deadline = Deadline::max(), .stop = source.get_token()};
  const auto one = seat();
  EXPECT_EQ(std::get<Error>(one->ask(Ask::queue, 3s, stopped)).code, Errc::cancelled);
  EXPECT_EQ(std::get<Error>(one->ask(Ask::queue, 3s, {.deadline = deadline_in(-1ms), .stop = {}})).code,
            Errc::timed_out);
  EXPECT_EQ(info().waiters, 0U);
  EXPECT_EQ(std::get<Seat::Silence>(one->listen({.deadline = deadline_in(1ms), .stop = {}})),
            Seat::Silence::time_is_up);
  EXPECT_TRUE(std::holds_alternative<Seat::Queued>(ask(*one)));
  EXPECT_EQ(std::get<Seat::Silence>(one->listen({.deadline = deadline_in(1ms), .stop = {}})),
            Seat::Silence::time_is_up);
  release();
  EXPECT_EQ(std::get<Seat::Silence>(one->listen(stopped)), Seat::Silence::stopped) << "who was stopped gets nothing";
}

TEST_F(MemoryQueue, AForkedChildHasAQueueOfItsOwn) {
  auto one = queued(), two = queued();
  expect_well_in_child([&] {
    require(free_and_nobody_waits(), "the parent's waiters are here");
    require(!heard(*one), "it heard something");
    require(acquires(*one), "the parent holds it");
    require(ahead_of(*two) == 0, "the parent's waiter is ahead");
    require(release(*one).outcome == ReleaseOutcome::released, "it was not the child's");
    require(granted(*two), "no hand-over");
    one.reset();
    two.reset();
  });
  EXPECT_EQ(info().waiters, 2U);
  release();
  EXPECT_TRUE(granted(*one));
}

}  // namespace
}  // namespace redlease
