// Waiters in one another's way, in callbacks, at the end of their client, and in processes that fork.
#include <unistd.h>

#include "in_child.hpp"
#include "queue_support.hpp"

namespace redlease {
namespace {

using namespace testing_support;

using QueueAndThreads = QueueFaults;

TEST_F(QueueAndThreads, ThatWantTwoLeasesInBothOrdersGoOnSinceTheirWaitsEnd) {
  Client client(server.url_unix());
  std::atomic<int> both{0}, gave_up{0};
  {
    Crew crew(4, [&](int seat) {
      std::this_thread::sleep_for(seat * 11ms);
      const std::string first = seat % 2 == 0 ? "left" : "right", second = seat % 2 == 0 ? "right" : "left";
      auto one = client.acquire(first, patient_for(30s, 100ms)).lease();
      if (!one) return void(++gave_up);
      auto two = client.acquire(second, patient_for(30s, 60ms)).lease();
      if (!two) return void(++gave_up);
      EXPECT_TRUE(stay(room, *std::move(two)));
      ++both;
    });
    EXPECT_TRUE(eventually([&] { return both >= 3 && gave_up >= 3; }, 20s)) << both << " " << gave_up;
    const Deadline at = LeaseClock::now();
    crew.end();
    EXPECT_LE(since(at), 2s);
  }
  expect_exclusion();
  for (const std::string lease : {"left", "right"}) {
    EXPECT_TRUE(eventually([&] { return !raw.exists(lease) && !raw.exists(queue_of(lease)); }, 2s)) << lease;
  }
}

TEST_F(QueueAndThreads, ThatShareOneConnectionAllGetTheirTurns) {
  Client client(server.url_unix(), {.max_connections = 1});
  std::atomic<int> failed{0};
  Crew crew(32, [&](int) {
    auto lease = client.acquire(key, patient_for(30s, 30s)).lease();
    lease ? void(stay(room, *std::move(lease))) : void(++failed);
  });
  EXPECT_TRUE(eventually([&] { return crew.least() >= 10; }, 20s)) << crew.least();
  crew.end();
  EXPECT_EQ(failed, 0);
  expect_exclusion();
  expect_nothing_left(1s);
  expect_no_queue();
}

TEST_F(QueueAndThreads, ThatShareOneConnectionAllHearThatItIsBusyInTime) {
  raw.command({"SET", key, "0123456789abcdef.0123456789abcdef0123456789abcdef", "PX", "600000"});
  Client client(server.url_unix(), {.max_connections = 1});
  std::atomic<int> busy{0}, unknown{0}, late{0};
  {
    std::vector<std::jthread> crew;
    for (int i = 0; i < 32; ++i) {
      crew.emplace_back([&] {
        const Deadline begun = LeaseClock::now();
        const AcquireResult result = client.acquire(key, patient_for(30s, 400ms));
        if (since(begun) > 400ms + at_once) ++late;
        busy += result.outcome() == AcquireOutcome::busy;
        unknown += result.outcome() == AcquireOutcome::unknown;
      });
    }
  }
  EXPECT_EQ(busy + unknown, 32);
  EXPECT_GE(busy, 16) << "a doubt where there was none";
  EXPECT_LE(late, 3);
  expect_no_queue();
}

TEST_F(QueueAndThreads, WaitInsideAnOnLostCallback) {
  Client client(server.url_unix());
  std::atomic<bool> got{false};
  Lease other = taken(client, "other");
  LeaseOptions options{.ttl = 300ms, .wait = 5s};
  options.on_lost = [&](LossCause) {
    auto lease = client.acquire("other", patient_for(30s, 10s)).lease();
    got = lease.has_value();
  };
  LeaseGuard guard(client, key, options);
  raw.set(key, "stolen");
  ASSERT_TRUE(eventually([&] { return raw.exists(queue_of("other")); })) << "it did not wait";
  other.release();
  EXPECT_TRUE(eventually([&] { return got.load(); }));
}

TEST_F(QueueAndThreads, WaitInsideAStopCallback) {
  Client client(server.url_unix());
  std::atomic<bool> got{false};
  Lease other = taken(client, "other");
  LeaseGuard guard(client, key, {.ttl = 300ms, .wait = 5s});
  const std::stop_callback callback(guard.stop_token(), [&] {
    auto lease = client.acquire("other", patient_for(30s, 10s)).lease();
    got = lease.has_value();
  });
  raw.set(key, "stolen");
  ASSERT_TRUE(eventually([&] { return raw.exists(queue_of("other")); })) << "it did not wait";
  other.release();
  EXPECT_TRUE(eventually([&] { return got.load(); }));
}

TEST_F(QueueAndThreads, AClientEndsAtOnceBehindItsLastWaiter) {
  Client holder(server.url_unix());
  int slow = 0;
  for (int round = 0; round < 40; ++round) {
    std::optional<Client> client;
    client.emplace(server.url_unix(), ClientOptions{.max_inboxes = static_cast<std::size_t>(round % 3)});
    Lease lease = taken(holder, key);
    std::stop_source source;
    {
      std::vector<std::jthread> crew;
      for (int i = 0; i < 4; ++i) {
        crew.emplace_back([&] {
          auto mine = client->acquire(key, patient_for(30s, 30s, 500ms), source.get_token()).lease();
          if (mine) stay(room, *std::move(mine));
        });
      }
      ASSERT_TRUE(await_queued(4));
      round % 2 == 0 ? void(source.request_stop()) : void(lease.release());
    }
    const Deadline at = LeaseClock::now();
    client.reset();
    EXPECT_LE(since(at), 700ms) << "its op_timeout";
    slow += since(at) > 100ms;
    lease.release();
    ASSERT_TRUE(eventually([&] { return channels() == 0; }, 1s)) << channels() << " channels, round " << round;
    ASSERT_TRUE(eventually([&] { return queued() == 0; }, 1s)) << "round " << round;
  }
  EXPECT_LE(slow, 4);
  expect_exclusion();
}

// ThreadSanitizer does not allow threads after a fork from among several.
#if !defined(__SANITIZE_THREAD__)
TEST_F(QueueAndThreads, AForkInTheMiddleOfAWaitLeavesTheParentWaitingAndTheChildAFreshStart) {
  Client holder(server.url_unix());
  for (const std::size_t inboxes : {64U, 0U}) {
    Client client(server.url_unix(), {.max_inboxes = inboxes});
    Lease lease = taken(holder, key);
    std::atomic<bool> got{false};
    std::jthread waiter([&] {
      Lease mine = lease_of(client.acquire(key, patient_for(30s, 60s)));
      got = true;
      EXPECT_TRUE(stay(room, std::move(mine)));
    });
    ASSERT_TRUE(await_queued(1));
    Children child(1, [&](int) {
      // Behind the parent's waiter, by the same client.
      auto mine = client.acquire(key, patient_for(30s, 20s)).lease();
      require(mine.has_value(), "the child did not get it");
      require(stay(room, *std::move(mine)), "it was over when the child came in");
    });
    ASSERT_TRUE(await_queued(2));
    EXPECT_FALSE(got);
    const Deadline at = LeaseClock::now();
    lease.release();
    waiter.join();
    EXPECT_LE(since(at), 500ms) << "the child had the parent's inbox";
    EXPECT_EQ(child.wait(), std::vector<int>{0});
    EXPECT_LE(since(at), 1s);
  }
  expect_exclusion();
  expect_nothing_left(1s);
  expect_no_queue();
}
#endif

}  // namespace
}  // namespace redlease
