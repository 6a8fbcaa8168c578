// fork() while the parent's threads are in the middle of calls and hold whatever locks there are. Apart from the other
// tests of fork, since it is not built for AddressSanitizer: its malloc may stay locked in the child.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "in_child.hpp"
#include "redlease/redlease.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "support/sleepless.hpp"

namespace redlease {
inline namespace v0 {
namespace {

TEST(ForkUnderLoad, NoChildHangsAndNoThreadOfTheParentNotices) {
  RedisServer server;
  ClientOptions few;
  few.max_connections = 2;  // so that the pool's lock is fought for
  Client shared(server.url_unix(), few);
  Client memory("memory:");
  std::atomic<bool> stop{false};
  std::atomic<int> cycles{0};
  std::atomic<int> failures{0};
  const auto load = [&](Client& on, int i) {
    const LeaseKey key("load:" + std::to_string(i));
    while (!stop) {
      auto lease = on.try_acquire(key, lasting).lease();
      if (!lease || lease->renew() != RenewOutcome::renewed || lease->release() != ReleaseOutcome::released) {
        ++failures;
      }
      ++cycles;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i) threads.emplace_back([&, i] { load(i < 4 ? shared : memory, i); });
    for (int round = 0; round < 60; ++round) {
      const int seen = cycles;
      expect_well_in_child(
          [&] {
            const std::string own = "childs:" + std::to_string(round);
            for (Client* one : {&shared, &memory}) {
              Lease lease = acquire(*one, own);
              require(lease.renew() == RenewOutcome::renewed, "renew: " + lease.last_error().detail);
              require(lease.release() == ReleaseOutcome::released, "release: " + lease.last_error().detail);
            }
          },
          Millis(30'000));
      if (eventually([&] { return cycles > seen; }, Millis(30'000))) continue;
      ADD_FAILURE() << "the parent's threads stand still";
      break;
    }
    stop = true;
  }
  EXPECT_EQ(failures, 0);
  RawClient raw(server.unix_socket());
  EXPECT_TRUE(raw.keys("load:?").empty());
}

}  // namespace
}  // namespace v0
}  // namespace redlease
