// Very many waiters at one MemoryStore, and those that leave while they are granted the lease.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "memory_wait.hpp"

namespace redlease {
namespace {

using namespace testing_support;

TEST_F(MemoryWait, AStopOrADeadlineThatCrossesAGrantLosesNothing) {
  int acquired = 0, not_acquired = 0;
  std::minstd_rand random(7);
  for (int i = 0; i < 600; ++i) {
    Lease lease = taken(client, key, patient());
    // Every other one ends by its deadline, whose last question is put 20 ms before it.
    const bool by_stop = i % 2 == 0;
    const Deadline start = LeaseClock::now();
    std::jthread waiter([&](const std::stop_token& stop) {
      const AcquireResult result = client.acquire(key, patient(by_stop ? forever : 22ms), stop);
      EXPECT_NE(result.outcome(), AcquireOutcome::unknown);
      ++(result.outcome() == AcquireOutcome::acquired ? acquired : not_acquired);
    });
    const auto releasing_at = start + std::chrono::microseconds(random() % (by_stop ? 300 : 4'000));
    const auto stopping_at = start + std::chrono::microseconds(random() % 300);
    bool released = false, stopped = !by_stop;
    while (!released || !stopped) {
      const Deadline now = LeaseClock::now();
      if (!released && now >= releasing_at) released = lease.release() == ReleaseOutcome::released;
      if (!stopped && now >= stopping_at) stopped = waiter.request_stop();
    }
    waiter.join();
    ASSERT_TRUE(free_and_nobody_waits()) << i;
  }
  EXPECT_GT(acquired, 0);
  EXPECT_GT(not_acquired, 0);
}

TEST_F(MemoryWait, NothingRemainsOfAThousandThatLeaveAtOnce) {
  Lease lease = taken(client, key, patient());
  std::stop_source source;
  std::atomic<int> acquired{0}, unknown{0};
  std::vector<std::jthread> crew;
  for (int i = 0; i < 1'000; ++i) {
    crew.emplace_back([&] {
      const AcquireResult result = client.acquire(key, patient(), source.get_token());
      acquired += result.outcome() == AcquireOutcome::acquired;
      unknown += result.outcome() == AcquireOutcome::unknown;
    });
  }
  ASSERT_TRUE(wait_for_waiters(1'000));
  source.request_stop();
  lease.release();
  crew.clear();
  EXPECT_EQ(acquired, 0) << "granted after the stop";
  EXPECT_EQ(unknown, 0);
  EXPECT_TRUE(free_and_nobody_waits());
}

TEST_F(MemoryWait, TwoHundredTakeTurns) {
  constexpr std::size_t crew_size = 200;
  constexpr int turns = 5;
  std::vector<int> acquired(crew_size, 0);  // guarded by the lease
  std::atomic<int> inside{0}, unfair{0};
  std::atomic<std::size_t> working{crew_size};
  std::vector<std::jthread> crew;
  for (std::size_t i = 0; i < crew_size; ++i) {
    crew.emplace_back([&, i] {
      for (int turn = 0; turn < turns; ++turn) {
        const Lease lease = lease_of(client.acquire(key, patient()));
        EXPECT_EQ(++inside, 1);
        // All others wait: whoever is served twice before another once was let in out of turn.
        EXPECT_TRUE(wait_for_waiters(working - 1));
        ++acquired[i];
        const auto [least, most] = std::ranges::minmax(acquired);
        unfair += most - least > 1;
        if (turn + 1 == turns) --working;
        --inside;
      }
    });
  }
  crew.clear();
  EXPECT_EQ(acquired, std::vector<int>(crew_size, turns));
  EXPECT_EQ(unfair, 0);
  EXPECT_TRUE(free_and_nobody_waits());
}

TEST_F(MemoryWait, TwoHundredInACrowdExcludeEachOther) {
  std::atomic<int> inside{0};
  std::vector<std::pair<FencingToken, bool>> entered;  // guarded by the lease
  std::atomic<int> acquired{0};
  std::vector<std::jthread> crew;
  for (unsigned i = 0; i < 200; ++i) {
    crew.emplace_back([&, i] {
      std::minstd_rand random(i + 1);
      for (int turn = 0; turn < 20; ++turn) {
        // A try, a short wait, one that is stopped on the way, and one that gets its turn.
        const unsigned kind = random() % 4;
        std::stop_source source;
        std::jthread stopper;
        if (kind == 2) {
          stopper = std::jthread([source, pause = std::chrono::microseconds(random() % 20'000)]() mutable {
            std::this_thread::sleep_for(pause);
            source.request_stop();
          });
        }
        AcquireResult result =
            kind == 0 ? client.try_acquire(key, patient())
                      : client.acquire(key, patient(kind == 1 ? Millis(random() % 60) : forever), source.get_token());
        EXPECT_NE(result.outcome(), AcquireOutcome::unknown);
        EXPECT_TRUE(kind != 3 || result.outcome() == AcquireOutcome::acquired);
        const auto lease = std::move(result).lease();
        if (!lease) continue;
        EXPECT_EQ(++inside, 1);
        ++acquired;
        entered.emplace_back(*lease->fencing_token(), lease->held());
        --inside;
      }
    });
  }
  crew.clear();
  EXPECT_EQ(entered.size(), static_cast<std::size_t>(acquired));
  EXPECT_GT(acquired, 200 * 20 / 8);
  EXPECT_EQ(std::ranges::adjacent_find(entered, std::greater_equal<>(), &std::pair<FencingToken, bool>::first),
            entered.end());
  EXPECT_TRUE(std::ranges::all_of(entered, &std::pair<FencingToken, bool>::second));
  EXPECT_TRUE(free_and_nobody_waits());
}

}  // namespace
}  // namespace redlease
