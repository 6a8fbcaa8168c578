// First come, first served.
#include <mutex>

#include "queue_support.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class QueueFairness : public QueueFaults {
 protected:
  // Behind whoever holds it, one after the other; who came in which order. `release` begins it.
  std::vector<int> in_order(Client& client, int waiters, const std::function<void()>& release, Millis stay_for = 1ms) {
    std::mutex mutex;
    std::vector<int> order;
    std::vector<std::jthread> crew;
    for (int i = 0; i < waiters; ++i) {
      crew.emplace_back([&, i] {
        Lease lease = lease_of(client.acquire(key, patient_for(6s, 60s)));
        {
          const std::lock_guard lock(mutex);
          order.push_back(i);
        }
        last_waiters_fence = fence_of(lease);
        EXPECT_TRUE(stay(room, std::move(lease), stay_for));
      });
      EXPECT_TRUE(await_queued(i + 1));
    }
    release();
    crew.clear();
    return order;
  }
  static std::vector<int> up_to(int count) {
    std::vector<int> all;
    for (int i = 0; i < count; ++i) all.push_back(i);
    return all;
  }
  std::atomic<std::uint64_t> last_waiters_fence{0};
};

TEST_F(QueueFairness, ThoseWhoAlwaysWaitGetItEquallyOften) {
  int best = 1'000;
  for (int run = 0; run < 3 && best > 2; ++run) {
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < 5; ++i) clients.push_back(std::make_unique<Client>(server.url_unix()));
    Crew crew(5, [&](int seat) {
      const auto& client = clients[static_cast<std::size_t>(seat)];
      // Long enough for the one before to be back in the queue.
      stay(room, lease_of(client->acquire(key, patient_for(6s, 30s))), 8ms);
    });
    std::this_thread::sleep_for(2s);
    best = std::min(best, crew.most() - crew.least());
    EXPECT_GE(crew.least(), 5);
  }
  EXPECT_LE(best, 2) << "one for those who wait, and one for the start and the end";
  expect_exclusion();
}

TEST_F(QueueFairness, AReleaseAndAnImmediateAcquireComeBehindWhoeverWaits) {
  Client a(server.url_unix()), b(server.url_unix());
  for (int round = 0; round < 100; ++round) {
    Lease mine = taken(a, key);
    std::uint64_t fence_of_b = 0;
    std::jthread waiter([&] {
      Lease lease = lease_of(b.acquire(key, patient_for(30s, 30s)));
      fence_of_b = fence_of(lease);
      EXPECT_TRUE(stay(room, std::move(lease)));
    });
    ASSERT_TRUE(await_queued(1));
    mine.release();
    Lease again = lease_of(a.acquire(key, patient_for(30s, 30s)));
    const std::uint64_t fence_of_a = fence_of(again);
    EXPECT_TRUE(stay(room, std::move(again)));
    waiter.join();
    ASSERT_LT(fence_of_b, fence_of_a) << "barged in, round " << round;
  }
  expect_exclusion();
}

TEST_F(QueueFairness, TriesNeverOvertakeThoseWhoWait) {
  Client holder(server.url_unix()), client(server.url_unix()), trier(server.url_unix());
  for (int round = 0; round < 10; ++round) {
    Lease lease = taken(holder, key);
    std::atomic<int> tries{0};
    std::atomic<std::uint64_t> first_try{~std::uint64_t{0}};
    std::vector<std::jthread> triers;
    const auto order = in_order(client, 4, [&] {
      for (int i = 0; i < 2; ++i) {
        triers.emplace_back([&](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            const auto got = trier.try_acquire(key).lease();
            ++tries;
            if (!got) continue;
            const std::uint64_t fence = fence_of(*got);
            for (auto least = first_try.load(); fence < least && !first_try.compare_exchange_weak(least, fence);) {
            }
          }
        });
      }
      EXPECT_TRUE(eventually([&] { return tries > 4; }));
      lease.release();
    });
    triers.clear();
    EXPECT_EQ(order, up_to(4));
    EXPECT_GT(first_try, last_waiters_fence);
  }
  expect_exclusion();
}

TEST_F(QueueFairness, AWaiterOlderThanAnyLimitKeepsItsPlace) {
  Client holder(server.url_unix()), client(server.url_unix());
  std::optional<LeaseGuard> guard;
  guard.emplace(holder, key, LeaseOptions{.ttl = 1s, .wait = 5s});
  // A lifetime is 3 s here, and each of them outlives two.
  const auto order = in_order(client, 6, [&] {
    std::this_thread::sleep_for(6'500ms);
    EXPECT_EQ(queued(), 6);
    guard.reset();
  });
  EXPECT_EQ(order, up_to(6));
  expect_exclusion();
  expect_nothing_left(1s);
  expect_no_queue();
}

TEST_F(QueueFairness, FiveHundredWaitersAllGetItInTheirOrder) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int waiters = 100;
#else
  constexpr int waiters = 500;
#endif
  Client holder(server.url_unix()), client(server.url_unix());
  Lease lease = taken(holder, key, {.ttl = 60s});
  const auto order = in_order(
      client, waiters, [&] { lease.release(); }, 0ms);
  EXPECT_EQ(order, up_to(waiters));
  expect_exclusion();
  expect_nothing_left(1s);
  expect_no_queue();
}

}  // namespace
}  // namespace redlease
