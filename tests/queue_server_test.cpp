// Waiters and a server in trouble.
#include "queue_support.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class QueueAndServer : public QueueFaults {
 protected:
  using QueueFaults::QueueFaults;

  // `count` take turns while `harm` is done every so often, until each has had `turns`.
  void take_turns(int count, int turns, Millis every, const std::function<void()>& harm) {
    std::atomic<int> failed{0};
    {
      Client client(server.url_tcp());
      Crew crew(count, [&](int) {
        auto lease = client.acquire(key, patient_for(2s, 30s, 600ms)).lease();
        lease ? void(stay(room, *std::move(lease), 200us)) : void(++failed);
      });
      const Deadline limit = deadline_in(20s);
      for (int before = -1; crew.least() < turns && LeaseClock::now() < limit;) {
        std::this_thread::sleep_for(every);
        if (crew.least() > before) harm();  // or a slow machine sees nothing but harm
        before = std::min(before, crew.least());
      }
      EXPECT_GE(crew.least(), turns);
    }
    EXPECT_EQ(failed, 0);
    expect_exclusion();
    expect_nothing_left(3s);
  }

  std::vector<std::jthread> waiting(int count, Client& client, std::atomic<int>& got) {
    std::vector<std::jthread> crew;
    for (int i = 0; i < count; ++i) {
      crew.emplace_back([&] {
        AcquireResult result = client.acquire(key, patient_for(6s, 60s));
        const std::string text = describe(result);
        auto lease = std::move(result).lease();
        EXPECT_TRUE(lease) << text;
        if (lease && stay(room, *std::move(lease), 200us)) ++got;
      });
    }
    return crew;
  }

  // Each waits once, behind somebody who holds it.
  void all_get_it(int count, Client& client, const std::function<void()>& harm, Millis limit) {
    std::atomic<int> got{0};
    auto crew = waiting(count, client, got);
    EXPECT_TRUE(await_queued(count, 20s));
    harm();
    const Deadline from = LeaseClock::now();
    crew.clear();
    EXPECT_LE(since(from), limit);
    EXPECT_EQ(got, count);
    expect_exclusion();
  }

  void hold() { raw.command({"SET", key, "0123456789abcdef.0123456789abcdef0123456789abcdef", "PX", "600000"}); }
};

TEST_F(QueueAndServer, WithTheQueueDeletedAgainAndAgainAllGoOn) {
  take_turns(6, 20, 50ms, [&] { raw.del(queue_of(key)); });
}

TEST_F(QueueAndServer, WithTheQueueRenamedAwayAgainAndAgainAllGoOn) {
  take_turns(6, 20, 50ms, [&] { raw.command({"RENAME", queue_of(key), "stolen"}); });
}

TEST_F(QueueAndServer, WithTheSignsOfLifeDeletedAnOldWaiterHasItWithinAHeartbeat) {
  hold();
  Client client(server.url_tcp());
  all_get_it(
      1, client,
      [&] {
        // Older than its heartbeat of a second, of which the key is the proof.
        ASSERT_TRUE(eventually([&] { return raw.exists(seen_of(key)); }));
        raw.del(seen_of(key));
        ASSERT_TRUE(client.break_lease(key).value());
      },
      1'300ms);
  expect_no_queue();
}

TEST_F(QueueAndServer, WithAQueueOfAnotherTypeAllGoOn) {
  hold();
  Client client(server.url_tcp()), other(server.url_tcp());
  all_get_it(
      4, client,
      [&] {
        raw.del(queue_of(key));
        raw.set(queue_of(key), "a string");
        raw.command({"PEXPIRE", queue_of(key), "60000"});
        ASSERT_TRUE(client.break_lease(key).value());
      },
      8s);
  raw.del(queue_of(key));
}

TEST_F(QueueAndServer, BehindAQueueOfAnotherTypeAllWaitWithoutAnOrder) {
  hold();
  raw.set(queue_of(key), "a string");
  Client client(server.url_tcp());
  std::atomic<int> got{0};
  auto crew = waiting(4, client, got);
  std::this_thread::sleep_for(300ms);  // all have asked while it was held, or will be busy with each other
  ASSERT_TRUE(client.break_lease(key).value());
  crew.clear();
  EXPECT_EQ(got, 4);
  expect_exclusion();
  EXPECT_EQ(raw.get(queue_of(key)), "a string");
}

TEST_F(QueueAndServer, RestartedEmptyWhileFiftyWaitAllGetIt) {
  hold();
  Client client(server.url_tcp());
  all_get_it(
      50, client,
      [&] {
        server.restart();
        raw = RawClient(server.unix_socket());
      },
      15s);
  expect_nothing_left(2s);
}

TEST_F(QueueAndServer, StandingStillForASecondAndAHalfAllGoOn) {
  hold();
  Client client(server.url_tcp());
  all_get_it(
      8, client,
      [&] {
        Stopped stopped(server);
        std::this_thread::sleep_for(1'500ms);
        stopped.go_on();
        raw.del(key);
      },
      8s);
  expect_nothing_left(7s);
  expect_no_queue();
}

TEST_F(QueueAndServer, BusyWithAScriptAllGoOn) {
  hold();
  raw.config_set("busy-reply-threshold", "20");
  Client client(server.url_tcp());
  all_get_it(
      8, client,
      [&] {
        RawClient looper(server.tcp());
        looper.send({"EVAL", "while true do end", "0"});
        ASSERT_TRUE(eventually([&] { return raw.command({"PING"}).text.starts_with("BUSY"); }));
        std::this_thread::sleep_for(1'200ms);  // so that each asks meanwhile
        raw.command({"SCRIPT", "KILL"});
        (void)looper.receive();
        raw.del(key);
      },
      8s);
  expect_nothing_left(7s);
  expect_no_queue();
}

struct QueueAndLoading : QueueAndServer {
  QueueAndLoading()
      : QueueAndServer({"key-load-delay 5000", "loading-process-events-interval-bytes 1024", "rdbcompression no"}) {
    for (int i = 0; i < 100; ++i) raw.set("filler" + std::to_string(i), std::string(4'096, 'x'));
  }
};

TEST_F(QueueAndLoading, TheyWaitUntilItIsDone) {
  hold();
  Client client(server.url_tcp());
  all_get_it(
      8, client,
      [&] {
        server.restart(true, Await::answer);
        raw = RawClient(server.unix_socket());
        EXPECT_TRUE(raw.command({"GET", key}).text.starts_with("LOADING")) << "not slow enough";
        ASSERT_TRUE(eventually([&] { return raw.command({"DEL", key}).kind == RawReply::Kind::integer; }, 20s));
      },
      20s);
}

}  // namespace
}  // namespace redlease
