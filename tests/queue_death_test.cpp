// What the death and the pause of processes cost those who wait.
#include <signal.h>
#include <unistd.h>

#include "queue_support.hpp"

namespace redlease {
namespace {

using namespace testing_support;

// Children are made before this process has a thread; each begins when its cell says so.
class QueueAndDeath : public QueueFaults {
 protected:
  enum Cell : std::size_t { go, acquired_at = 16, released = 32 };

  // Takes one turn when it is told to, holds it until it is told to release, and again.
  Children waiters(int count, Millis ttl) {
    return Children(count, [this, ttl](int seat) {
      Client client(server.url_unix());
      const auto cell = static_cast<std::size_t>(seat);
      for (;;) {
        while (room[go + cell] == 0) std::this_thread::sleep_for(100us);
        if (room[go + cell] < 0) return;
        Lease lease = lease_of(client.acquire(key, patient_for(ttl, 30s)));
        const Deadline until = lease.deadline();
        if (room.enter(lease)) room[acquired_at + cell] = Room::ticks(LeaseClock::now());
        while (room[released + cell] == 0 && lease.held()) std::this_thread::sleep_for(100us);
        room.leave(until);
        room[go + cell] = 0;
        (void)lease.release();
      }
    });
  }
  void begin(int seat) { room[go + static_cast<std::size_t>(seat)] = 1; }
  void queue_up(int seat) {
    const long long before = queued();
    begin(seat);
    ASSERT_TRUE(await_queued(before + 1));
  }
  bool has_it(int seat) { return room[acquired_at + static_cast<std::size_t>(seat)] != 0; }
  Millis took(int seat, Deadline from) {
    return std::chrono::duration_cast<Millis>(Room::at(room[acquired_at + static_cast<std::size_t>(seat)]) - from);
  }
  void dismiss(int count) {
    for (std::size_t seat = 0; seat < static_cast<std::size_t>(count); ++seat) room[released + seat] = 1;
    for (std::size_t seat = 0; seat < static_cast<std::size_t>(count); ++seat) {
      EXPECT_TRUE(eventually([&] { return room[go + seat] == 0; }));
      room[go + seat] = -1;
    }
  }
  void again(int count) {
    for (std::size_t seat = 0; seat < static_cast<std::size_t>(count); ++seat) {
      room[released + seat] = room[acquired_at + seat] = room[go + seat] = 0;
    }
  }

  // A: in front. B: behind it. `harm` comes to A, then the holder releases. How long B waits from there.
  Millis next_after(const std::function<void(pid_t)>& harm, Millis ttl = 20s) {
    again(3);
    Children crew = waiters(3, ttl);
    begin(2);
    EXPECT_TRUE(eventually([&] { return has_it(2); }));
    queue_up(0);
    queue_up(1);
    harm(crew.pid(0));
    const Deadline at = LeaseClock::now();
    room[released + 2] = 1;
    EXPECT_TRUE(eventually([&] { return has_it(1); }, 10s)) << "the next one never came";
    const Millis wait = took(1, at);
    raw.del(key);
    return wait;
  }
};

TEST_F(QueueAndDeath, OfTheHolderTheNextHasItWhenItsTtlIsOver) {
  const Millis over = best_of_three(100ms, [&] {
    again(2);
    Children crew = waiters(2, 900ms);
    begin(0);
    EXPECT_TRUE(eventually([&] { return has_it(0); }));
    queue_up(1);
    crew.kill9(0);
    const Millis remaining(raw.pttl(key));
    const Deadline at = LeaseClock::now();
    EXPECT_TRUE(eventually([&] { return has_it(1); }));
    const Millis wait = took(1, at);
    EXPECT_GE(wait, remaining - 5ms);
    raw.del(key);
    return wait - remaining;
  });
  EXPECT_LE(over, 100ms);
  expect_exclusion();
}

TEST_F(QueueAndDeath, OfAWaiterTheOthersGoOnAtOnce) {
  const Millis wait = best_of_three(at_once, [&] {
    return next_after([](pid_t pid) {
      ::kill(pid, SIGKILL);
      siginfo_t state{};
      ::waitid(P_PID, static_cast<id_t>(pid), &state, WEXITED | WNOWAIT);
    });
  });
  EXPECT_LE(wait, at_once);
  expect_exclusion();
}

TEST_F(QueueAndDeath, AWaiterThatStoodLongerThanItsLifetimeIsPassedOverAndQueuesUpAnew) {
  Children crew = waiters(3, 6s);
  begin(2);
  ASSERT_TRUE(eventually([&] { return has_it(2); }));
  queue_up(0);
  queue_up(1);
  ::kill(crew.pid(0), SIGSTOP);
  // Its place is stale three heartbeats of a second after it last asked.
  std::this_thread::sleep_for(3'200ms);
  const Deadline at = LeaseClock::now();
  room[released + 2] = 1;
  ASSERT_TRUE(eventually([&] { return has_it(1); }));
  EXPECT_LE(took(1, at), 1s);
  EXPECT_FALSE(has_it(0));
  ::kill(crew.pid(0), SIGCONT);
  EXPECT_TRUE(await_queued(1)) << "it did not queue up anew";
  EXPECT_FALSE(has_it(0)) << "it took itself for the holder";
  room[released + 1] = 1;
  EXPECT_TRUE(eventually([&] { return has_it(0); }));
  dismiss(3);
  EXPECT_EQ(crew.wait(), std::vector<int>(3, 0));
  expect_exclusion();
  expect_nothing_left(1s);
  expect_no_queue();
}

TEST_F(QueueAndDeath, AWaiterThatStandsWithinItsLifetimeCostsItsTtlAndNeverTakesWhatIsOver) {
  const Millis wait = best_of_three(700ms, [&] {
    return next_after(
        [](pid_t pid) {
          ::kill(pid, SIGSTOP);
          siginfo_t state{};
          ::waitid(P_PID, static_cast<id_t>(pid), &state, WSTOPPED | WNOWAIT);
        },
        600ms);
  });
  EXPECT_LE(wait, 700ms);
  expect_exclusion();
}

TEST_F(QueueAndDeath, AGrantThatWasReadWhenItsTimeWasOverIsNoLease) {
  Children crew = waiters(2, 400ms);
  raw.command({"SET", key, "0123456789abcdef.0123456789abcdef0123456789abcdef", "PX", "60000"});
  queue_up(0);
  ::kill(crew.pid(0), SIGSTOP);
  Client breaker(server.url_unix());
  ASSERT_TRUE(breaker.break_lease(key).value()) << "hands it over to the one that stands";
  const std::string granted = raw.get(key).value_or("");
  ASSERT_NE(granted, "");
  ASSERT_TRUE(eventually([&] { return !raw.exists(key); }));
  raw.command({"SET", key, "0123456789abcdef.0123456789abcdef0123456789abcdef", "PX", "60000"});
  ::kill(crew.pid(0), SIGCONT);
  EXPECT_TRUE(await_queued(1));
  EXPECT_FALSE(has_it(0)) << "it believed in a grant of the past";
  raw.del(key);
  EXPECT_TRUE(eventually([&] { return has_it(0); }, 3s));
  room[go + 1] = -1;
  room[released] = 1;
  EXPECT_TRUE(eventually([&] { return room[go] == 0; }));
  room[go] = -1;
  EXPECT_EQ(crew.wait(), std::vector<int>(2, 0));
}

TEST_F(QueueAndDeath, OfAHundredWaitersCostsTheNextNoWaitingTime) {
  const Millis wait = best_of_three(200ms, [&] {
    raw.flushall();
    raw.command({"SET", key, "0123456789abcdef.0123456789abcdef0123456789abcdef", "PX", "60000"});
    Children process(1, [&](int) {
      Client client(server.url_unix(), {.max_inboxes = 100});
      std::vector<std::jthread> threads;
      for (int i = 0; i < 100; ++i) {
        threads.emplace_back([&] { (void)client.acquire(key, patient_for(30s, 60s)); });
      }
    });
    EXPECT_TRUE(await_queued(100));
    process.kill9(0);
    Client client(server.url_unix());
    (void)client.break_lease(key);
    const Deadline at = LeaseClock::now();
    lease_of(client.acquire(key, patient_for(30s, 20s))).release();
    return since(at);
  });
  EXPECT_LE(wait, 200ms) << "a liveness period is 5 s";
  expect_no_queue();
}

}  // namespace
}  // namespace redlease
