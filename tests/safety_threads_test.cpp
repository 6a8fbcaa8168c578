// One Client, used by many threads at once.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "contest.hpp"
#include "redlease/redlease.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"

namespace redlease {
inline namespace v0 {
namespace {

constexpr int threads = 16;

void run_threads(const std::function<void(int)>& fn) {
  std::vector<std::jthread> all;
  all.reserve(threads);
  for (int i = 0; i < threads; ++i) all.emplace_back([&fn, i] { fn(i); });
}

// Long, so that no load of the machine is taken for a fault of the library.
const LeaseOptions patient{.ttl = Millis(60'000), .op_timeout = Millis(20'000)};

TEST(SafetyAmongThreads, OnKeysOfTheirOwnEveryCycleOfEveryThreadSucceeds) {
  const int cycles = sections() / 2;
  RedisServer server;
  Client client(server.url_tcp());
  std::atomic<int> renewed{0};
  run_threads([&](int i) {
    const LeaseKey key("own:" + std::to_string(i));
    FencingToken before{};
    for (int n = 0; n < cycles; ++n) {
      auto lease = client.try_acquire(key, patient).lease();
      ASSERT_TRUE(lease) << "thread " << i << ", cycle " << n;
      ASSERT_GT(*lease->fencing_token(), before);
      before = *lease->fencing_token();
      if (lease->renew() == RenewOutcome::renewed) ++renewed;
      ASSERT_EQ(lease->release(), ReleaseOutcome::released) << lease->last_error().detail;
    }
  });
  EXPECT_EQ(renewed, threads * cycles);
  RawClient raw(server.unix_socket());
  EXPECT_EQ(raw.keys("own:?").size() + raw.keys("own:??").size(), 0U);
}

TEST(SafetyAmongThreads, OnOneKeyThereIsOneHolderAtATimeAndNobodyIsLeftOut) {
  const int cycles = sections() / 2;
  RedisServer server;
  ClientOptions few;
  few.max_connections = 4;  // threads wait for connections too
  Client client(server.url_unix(), few);
  std::atomic<int> inside{0};
  std::atomic<int> met{0};
  std::atomic<int> busy{0};
  FencingToken last{};  // guarded by the lease, no mutex
  std::atomic<int> fences_that_fell{0};
  run_threads([&](int i) {
    for (int done = 0; done < cycles;) {
      auto result = client.try_acquire("shared", patient);
      if (result.outcome() == AcquireOutcome::busy) {
        ++busy;
        std::this_thread::sleep_for(std::chrono::microseconds(1'000 + 100 * i));
        continue;
      }
      ASSERT_EQ(result.outcome(), AcquireOutcome::acquired);
      Lease lease = *std::move(result).lease();
      if (++inside != 1) ++met;
      if (*lease.fencing_token() <= last) ++fences_that_fell;
      last = *lease.fencing_token();
      --inside;
      ASSERT_EQ(lease.release(), ReleaseOutcome::released) << lease.last_error().detail;
      ++done;
    }
  });
  EXPECT_EQ(met, 0);
  EXPECT_EQ(fences_that_fell, 0);
  EXPECT_GT(busy, threads) << "there was no contention";
  RawClient raw(server.unix_socket());
  EXPECT_FALSE(raw.exists("shared"));
}

}  // namespace
}  // namespace v0
}  // namespace redlease
