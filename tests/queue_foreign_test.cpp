// Waiters among those who do not know the queue.
#include "queue_support.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class QueueAndForeigners : public QueueFaults {
 protected:
  // SET NX PX, a short stay, compare-and-delete, a short rest: as other libraries do, until it is over.
  std::jthread foreigner(Millis rest) {
    return std::jthread([this, rest](const std::stop_token& stop) {
      RawClient redis(server.unix_socket());
      for (int i = 0; !stop.stop_requested(); ++i) {
        const std::string token = "foreign-" + std::to_string(i);
        const Deadline until = deadline_in(2s);
        if (redis.command({"SET", key, token, "NX", "PX", "2100"}).text == "OK") {
          room.enter(until, 0);
          std::this_thread::sleep_for(500us);
          room.leave(until);
          redis.command({"EVAL",
                         "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end return 0",
                         "1", key, token});
          ++foreign_turns;
        }
        std::this_thread::sleep_for(rest);
      }
    });
  }
  std::atomic<int> foreign_turns{0};
};

TEST_F(QueueAndForeigners, WhoBargeInOurWaitersAllMakeProgress) {
  std::atomic<int> failed{0};
  {
    Client client(server.url_unix());
    auto first = foreigner(2ms), second = foreigner(3ms);
    // As long as one of ours waits the lease is never free for anybody else.
    Crew crew(3, [&](int seat) {
      auto lease = client.acquire(key, patient_for(2s, 30s)).lease();
      lease ? void(stay(room, *std::move(lease), 300us)) : void(++failed);
      std::this_thread::sleep_for(10ms + seat * 3ms);
    });
    EXPECT_TRUE(eventually([&] { return crew.least() >= 10 && foreign_turns >= 20; }, 20s))
        << crew.least() << " turns, foreigners " << foreign_turns;
    crew.end();
  }
  EXPECT_EQ(failed, 0);
  expect_exclusion();
  expect_nothing_left(2s);
  expect_no_queue();
}

TEST_F(QueueAndForeigners, AKeyWithoutAnExpiryIsNeverTakenAndSoonWhenItIsDeleted) {
  Client client(server.url_unix());
  const Millis wait = best_of_three(300ms, [&] {
    raw.set(key, "somebody's");
    Deadline got{};
    std::jthread waiter([&] {
      Lease lease = lease_of(client.acquire(key, patient_for(6s, 30s)));
      got = LeaseClock::now();
      lease.release();
    });
    EXPECT_TRUE(await_queued(1));
    const Deadline until = deadline_in(1'500ms);  // longer than a heartbeat
    while (LeaseClock::now() < until && raw.get(key) == "somebody's") std::this_thread::sleep_for(5ms);
    EXPECT_EQ(raw.get(key), "somebody's");
    EXPECT_EQ(raw.pttl(key), -1);
    const Deadline at = LeaseClock::now();
    raw.del(key);
    waiter.join();
    return std::chrono::duration_cast<Millis>(got - at);
  });
  EXPECT_LE(wait, 300ms);
}

TEST_F(QueueAndForeigners, AnotherLibrarysReleaseIsFoundOutSoonAndInOrder) {
  Client client(server.url_unix());
  const Millis wait = best_of_three(300ms, [&] {
    raw.command({"SET", key, "somebody's", "PX", "600000"});
    std::vector<std::uint64_t> fences(3);
    std::vector<std::jthread> crew;
    Deadline first{};
    for (std::size_t i = 0; i < 3; ++i) {
      crew.emplace_back([&, i] {
        Lease lease = lease_of(client.acquire(key, patient_for(6s, 30s)));
        if (i == 0) first = LeaseClock::now();
        fences[i] = fence_of(lease);
        EXPECT_TRUE(stay(room, std::move(lease), 1ms));
      });
      EXPECT_TRUE(await_queued(static_cast<long long>(i) + 1));
    }
    const Deadline at = LeaseClock::now();
    raw.del(key);
    crew.clear();
    EXPECT_LT(fences[0], fences[1]);
    EXPECT_LT(fences[1], fences[2]);
    return std::chrono::duration_cast<Millis>(first - at);
  });
  EXPECT_LE(wait, 300ms);
  expect_exclusion();
}

TEST_F(QueueAndForeigners, ALeaseThatIsBrokenOrDeletedGoesToTheNextInOrder) {
  Client holder(server.url_unix()), client(server.url_unix());
  for (const bool broken : {true, false}) {
    Lease lost = taken(holder, key, {.ttl = 6s});
    std::vector<std::uint64_t> fences(3);
    std::vector<std::jthread> crew;
    for (std::size_t i = 0; i < 3; ++i) {
      crew.emplace_back([&, i] {
        Lease lease = lease_of(client.acquire(key, patient_for(6s, 30s)));
        fences[i] = fence_of(lease);
        EXPECT_TRUE(stay(room, std::move(lease), 1ms));
      });
      EXPECT_TRUE(await_queued(static_cast<long long>(i) + 1));
    }
    const Deadline at = LeaseClock::now();
    if (broken) {
      EXPECT_TRUE(holder.break_lease(key).value());
    } else {
      raw.del(key);
    }
    crew.clear();
    EXPECT_LE(since(at), 1'500ms) << "a heartbeat is a second";
    EXPECT_LT(fence_of(lost), fences[0]);
    EXPECT_LT(fences[0], fences[1]);
    EXPECT_LT(fences[1], fences[2]);
    EXPECT_EQ(lost.release(), ReleaseOutcome::not_held);
  }
  expect_exclusion();
}

}  // namespace
}  // namespace redlease
