// Client::acquire with a wait, over a MemoryStore.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "memory_wait.hpp"
#include "redlease/store/memory_store.hpp"
#include "support/fake_clock.hpp"

namespace redlease {
namespace {

using namespace testing_support;

TEST_F(MemoryWait, FiftyAreServedInTheOrderTheyCame) {
  Lease lease = taken(client, key, patient());
  std::vector<std::size_t> served;  // guarded by the lease
  std::vector<FencingToken> fences;
  std::vector<std::jthread> crew;
  for (std::size_t i = 0; i < 50; ++i) {
    crew.emplace_back([&, i] {
      const Lease mine = lease_of(client.acquire(key, patient()));
      served.push_back(i);
      fences.push_back(*mine.fencing_token());
    });
    ASSERT_TRUE(wait_for_waiters(i + 1));
  }
  lease.release();
  crew.clear();
  ASSERT_EQ(served.size(), 50U);
  EXPECT_TRUE(std::ranges::is_sorted(served));
  EXPECT_EQ(std::ranges::adjacent_find(fences, std::greater_equal<>()), fences.end());
  EXPECT_TRUE(free_and_nobody_waits());
}

TEST_F(MemoryWait, AReleaseOrABreakIsHeardAtOnce) {
  for (const bool broken : {false, true}) {
    const Millis best = best_of_three(20ms, [&] {
      Lease lease = taken(client, key, patient());
      Deadline got{};
      std::jthread waiter([&] {
        const Lease next = lease_of(client.acquire(key, patient()));
        got = LeaseClock::now();
      });
      EXPECT_TRUE(wait_for_waiters(1));
      const Deadline given = LeaseClock::now();
      broken ? (void)client.break_lease(key) : (void)lease.release();
      waiter.join();
      return std::chrono::ceil<Millis>(got - given);
    });
    EXPECT_LE(best, 20ms) << broken;
  }
}

TEST_F(MemoryWait, AnExpiryIsFoundSoonAfterIt) {
  const Millis best = best_of_three(60ms, [&] {
    taken(client, key, {.ttl = 200ms}).abandon();
    const Deadline end = LeaseClock::now() + 200ms;
    const Lease lease = lease_of(client.acquire(key, patient()));
    EXPECT_GE(LeaseClock::now(), end - 1ms);
    return std::chrono::ceil<Millis>(LeaseClock::now() - end);
  });
  EXPECT_LE(best, 60ms);
}

TEST_F(MemoryWait, AtItsDeadlineAWaiterIsToldBusyAndLeaves) {
  const Lease lease = taken(client, key, patient());
  const Millis best = best_of_three(260ms, [&] {
    const Stopwatch watch;
    EXPECT_GT(busy_of(client.acquire(key, patient(200ms))).remaining, 5min);
    EXPECT_GE(watch.elapsed_ms(), 170ms);
    EXPECT_EQ(info().waiters, 0U);
    return watch.elapsed_ms();
  });
  EXPECT_LE(best, 260ms);
  EXPECT_TRUE(lease.held());
}

TEST_F(MemoryWait, AStopEndsItWithin50Ms) {
  const Lease lease = taken(client, key, patient());
  const Millis best = best_of_three(50ms, [&] {
    Deadline back{};
    std::jthread waiter([&](const std::stop_token& stop) {
      EXPECT_EQ(error_of(client.acquire(key, patient(), stop)).code, Errc::cancelled);
      back = LeaseClock::now();
    });
    EXPECT_TRUE(wait_for_waiters(1));
    const Deadline asked = LeaseClock::now();
    waiter.request_stop();
    waiter.join();
    EXPECT_EQ(info().waiters, 0U);
    return std::chrono::ceil<Millis>(back - asked);
  });
  EXPECT_LE(best, 50ms);
}

TEST_F(MemoryWait, EachIsGrantedByItsOwnTerms) {
  Lease lease = taken(client, key, patient());
  constexpr std::uint64_t floor = std::uint64_t{1} << 51;
  std::jthread waiter([&] {
    LeaseOptions options = patient(forever, 20min);
    options.fence_floor = FencingToken{floor};
    options.label = "nightly";
    const Lease next = lease_of(client.acquire(key, options));
    EXPECT_EQ(fence_of(next), floor + 1);
    EXPECT_GT(next.remaining(), 15min);
    EXPECT_GT(info().remaining, 19min);
    EXPECT_EQ(info().label, "nightly");
  });
  ASSERT_TRUE(wait_for_waiters(1));
  EXPECT_TRUE(info().queue.front().ends_with(" nightly"));
  lease.release();
}

TEST(SharedMemoryWait, ClientsOfOneNameShareTheQueue) {
  Client one("memory:queue"), other("memory:queue"), stranger("memory:another");
  Lease lease = taken(one, key, patient());
  std::vector<int> served;
  std::vector<std::jthread> crew;
  for (int i = 0; i < 6; ++i) {
    crew.emplace_back([&, i] {
      const Lease mine = lease_of((i % 2 == 0 ? one : other).acquire(key, patient()));
      served.push_back(i);
    });
    ASSERT_TRUE(eventually([&] { return one.inspect(key).value().waiters == static_cast<std::size_t>(i) + 1; }));
  }
  EXPECT_EQ(other.inspect(key).value().waiters, 6U);
  EXPECT_EQ(stranger.inspect(key).value().waiters, 0U);
  lease.release();
  crew.clear();
  EXPECT_EQ(served, (std::vector<int>{0, 1, 2, 3, 4, 5}));
}

class MemoryWaitByAFakeClock : public testing::Test {
 protected:
  std::size_t waiters() { return client.inspect(key).value().waiters; }

  FakeClock clock;
  Client client{std::make_shared<MemoryStore>(clock), {.clock = &clock}};
};

TEST_F(MemoryWaitByAFakeClock, AWaiterGetsWhatExpiresWhenItIsMoved) {
  taken(client, key, {.ttl = 1h}).abandon();
  std::atomic<bool> got{false};
  std::jthread waiter([&] {
    const Lease lease = lease_of(client.acquire(key, {.ttl = 10min, .wait = 2h}));
    EXPECT_EQ(lease.deadline(), clock.now() + 10min - 6s - 2ms);
    got = true;
  });
  ASSERT_TRUE(eventually([&] { return waiters() == 1; }));
  for (int i = 0; i < 59; ++i) {
    clock.advance(1min);
    std::this_thread::sleep_for(1ms);
    ASSERT_FALSE(got);
  }
  clock.advance(1min + 100ms);
  waiter.join();
  EXPECT_TRUE(got);
}

TEST_F(MemoryWaitByAFakeClock, AGrantThatIsHeardCountsFromItsTimeAndNoLater) {
  for (const auto waited : {0ms, 500ms, 900ms}) {
    Lease lease = taken(client, key, {.ttl = 10min});
    Deadline deadline{};
    std::jthread waiter([&] {
      const Lease next = lease_of(client.acquire(key, {.ttl = 1min, .wait = 2h}));
      deadline = next.deadline();
      EXPECT_TRUE(next.held());
    });
    ASSERT_TRUE(eventually([&] { return waiters() == 1; }));
    clock.advance(waited);
    const Deadline granted = clock.now();
    lease.release();
    waiter.join();
    EXPECT_LE(deadline, granted + 1min - 602ms) << waited.count();
    EXPECT_GE(deadline, granted + 1min - 602ms - waited / 100 - 1us);
  }
}

TEST_F(MemoryWaitByAFakeClock, AWaitEndsByIt) {
  const Lease lease = taken(client, key, {.ttl = 24h});
  std::jthread waiter([&] { busy_of(client.acquire(key, {.ttl = 10min, .wait = 1h})); });
  ASSERT_TRUE(eventually([&] { return waiters() == 1; }));
  clock.advance(1h);
  waiter.join();
  EXPECT_EQ(waiters(), 0U);
}

}  // namespace
}  // namespace redlease
