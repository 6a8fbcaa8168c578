// Stops and deadlines at every point of a hand-over.
#include "queue_support.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class QueueAndStops : public QueueFaults {
 protected:
  struct End {
    AcquireOutcome outcome{};
    bool cancelled{false};
    std::string token{};
    Deadline at{};
  };

  // Waits, and if it gets the lease stays for a moment.
  End wait_once(Client& client, const LeaseOptions& options, std::stop_token stop = {}) {
    End end;
    AcquireResult result = client.acquire(key, options, std::move(stop));
    end.at = LeaseClock::now();
    end.outcome = result.outcome();
    if (const auto* unavailable = result.unavailable()) end.cancelled = unavailable->error.code == Errc::cancelled;
    if (auto lease = std::move(result).lease()) {
      end.token = lease->token().str();
      EXPECT_TRUE(stay(room, *std::move(lease), 100us));
    }
    return end;
  }

  void count(const End& end, Deadline due) {
    ++seen[static_cast<std::size_t>(end.outcome)];
    if (end.at - due > at_once) ++late;
  }
  int& seen_of(AcquireOutcome outcome) { return seen[static_cast<std::size_t>(outcome)]; }

  // The machine has other things to do now and then.
  void expect_hardly_any(int what, int of, const char* text) {
    EXPECT_LE(what, of / 20) << text << ": " << what << " of " << of;
  }

  // A waits in front and B behind it. The holder releases while A gives up, by a stop or at its deadline.
  void race(bool stopped, Client& of_a, int rounds);

  std::array<int, 4> seen{};
  int late{0}, slow{0};
};

void QueueAndStops::race(bool stopped, Client& of_a, int rounds) {
  Client holder(server.url_unix()), of_b(server.url_unix());
  for (int round = 0; round < rounds; ++round) {
    const auto offset = stopped ? (round % 41 - 20) * 30us : (round % 41 - 35) * 700us;
    Lease lease = taken(holder, key);
    std::stop_source source;
    End a, b;
    const Millis wait = stopped ? 20'000ms : 100ms;
    const Deadline a_ends = deadline_in(wait);
    std::jthread first([&] { a = wait_once(of_a, patient_for(30s, wait), source.get_token()); });
    ASSERT_TRUE(eventually([&] { return queued() >= 1 || LeaseClock::now() > a_ends; }));
    std::jthread second([&] { b = wait_once(of_b, patient_for(30s, 20s)); });
    eventually([&] { return queued() >= 2 || LeaseClock::now() > a_ends - 40ms; });
    Deadline due = a_ends, released{};
    const auto stop = [&] {
      due = LeaseClock::now();
      source.request_stop();
    };
    const Deadline at = stopped ? LeaseClock::now() : a_ends;
    if (stopped && offset < 0us) stop();
    const Deadline go = deadline_after(
        at, stopped ? LeaseClock::duration(std::abs(offset.count()) * 1'000) : LeaseClock::duration(offset));
    while (LeaseClock::now() < go) {
    }
    released = LeaseClock::now();
    lease.release();
    if (stopped && offset >= 0us) {
      while (LeaseClock::now() < go + offset) {
      }
      stop();
    }
    first.join();
    count(a, due);
    second.join();
    ASSERT_EQ(b.outcome, AcquireOutcome::acquired) << "round " << round;
    if (b.at - std::max(released, a.at) > 100ms) ++slow;
    EXPECT_LT(b.at - std::max(released, a.at), 1'500ms) << "more than a heartbeat, round " << round;
    ASSERT_TRUE(eventually([&] { return !raw.exists(key); }, 1s)) << "round " << round;
  }
  EXPECT_GT(seen_of(AcquireOutcome::acquired), 0);
  EXPECT_GT(rounds - seen_of(AcquireOutcome::acquired), 0);
  expect_hardly_any(late, rounds, "late");
  expect_hardly_any(slow, rounds, "the next one waited long");
  expect_exclusion();
  expect_no_queue();
}

TEST_F(QueueAndStops, AStopWhileTheLeaseIsHandedOverLosesNoGrant) {
  Client client(server.url_unix());
  race(true, client, 205);
}

TEST_F(QueueAndStops, AStopWhileTheLeaseIsHandedOverLosesNoGrantOfASharedInbox) {
  Client client(server.url_unix(), {.max_inboxes = 0});
  race(true, client, 123);
}

TEST_F(QueueAndStops, ADeadlineWhileTheLeaseIsHandedOverLosesNoGrant) {
  Client client(server.url_unix());
  race(false, client, 61);
}

// Every reply takes 4 ms, and a wait has about seven until it listens.
TEST_F(QueueAndStops, AStopAnywhereOnTheWayIntoTheQueueLeavesNothingInIt) {
  FaultProxy proxy(server.tcp());
  Faults slow_replies;
  slow_replies.down.delay = 4ms;
  proxy.on_new(slow_replies);
  raw.command({"SET", key, "0123456789abcdef.0123456789abcdef0123456789abcdef", "PX", "600000"});
  for (int i = 0; i < 90; ++i) {
    Client client(proxy.url());
    std::stop_source source;
    Deadline due{};
    std::jthread stopper([&] {
      std::this_thread::sleep_for(i * 600us);
      due = LeaseClock::now();
      source.request_stop();
    });
    const End end = wait_once(client, patient_for(30s, 20s), source.get_token());
    stopper.join();
    count(end, due);
    EXPECT_TRUE(end.cancelled || end.outcome == AcquireOutcome::unknown);
    EXPECT_TRUE(eventually([&] { return queued() == 0; }, 1s)) << "stopped after " << i * 600 << " us";
  }
  expect_hardly_any(late, 90, "late");
  EXPECT_GT(seen_of(AcquireOutcome::unavailable), 0);
  raw.del(key);
  expect_nothing_left(1s);
}

TEST_F(QueueAndStops, AStopWhileSubscribingIsCancelledAtOnceAndNothingIsLeft) {
  raw.command({"SET", key, "0123456789abcdef.0123456789abcdef0123456789abcdef", "PX", "600000"});
  FaultProxy proxy(server.tcp());
  Faults dumb;
  dumb.down.withhold = true;
  Millis best = 1h;
  for (int run = 0; run < 3 && best > at_once; ++run) {
    Client client(proxy.url());
    ASSERT_TRUE(reachable(client));
    const auto connections = proxy.connections();
    proxy.on_next(dumb);
    std::stop_source source;
    End end;
    std::jthread waiter([&] { end = wait_once(client, patient_for(30s, 20s), source.get_token()); });
    ASSERT_TRUE(eventually([&] { return proxy.connections() > connections; }));
    std::this_thread::sleep_for(20ms);
    const Deadline due = LeaseClock::now();
    source.request_stop();
    waiter.join();
    EXPECT_TRUE(end.cancelled);
    best = std::min(best, std::chrono::duration_cast<Millis>(end.at - due));
  }
  EXPECT_LE(best, at_once);
  proxy.heal();
  expect_no_queue(100ms);
}

TEST_F(QueueAndStops, AStopWhileTheServerStandsIsUnknownAtOnceAndTheNextOneHasItSoon) {
  Client holder(server.url_unix()), of_a(server.url_unix()), of_b(server.url_unix());
  const Millis best = best_of_three(at_once, [&] {
    Lease lease = taken(holder, key);
    std::stop_source source;
    End a, b;
    std::jthread first([&] { a = wait_once(of_a, patient_for(30s, 20s), source.get_token()); });
    EXPECT_TRUE(await_queued(1));
    std::jthread second([&] { b = wait_once(of_b, patient_for(30s, 20s)); });
    EXPECT_TRUE(await_queued(2));
    Deadline due{};
    {
      const Stopped stopped(server);
      due = LeaseClock::now();
      source.request_stop();
      first.join();
      EXPECT_EQ(a.outcome, AcquireOutcome::unknown) << "that it left is not confirmed";
    }
    lease.release();
    second.join();
    EXPECT_EQ(b.outcome, AcquireOutcome::acquired);
    EXPECT_TRUE(eventually([&] { return !raw.exists(key); }, 1s));
    return std::chrono::duration_cast<Millis>(a.at - due);
  });
  EXPECT_LE(best, at_once);
  expect_exclusion();
  expect_no_queue();
}

// The channel lives on for the others: nobody may take it for hers.
TEST_F(QueueAndStops, WhoeverLeftASharedInboxWithoutAWordIsPassedOver) {
  FaultProxy proxy(server.tcp());
  Client holder(server.url_unix()), of_b(server.url_unix());
  Client shared(proxy.url(), {.max_inboxes = 0, .name = "shared"});
  std::stop_source others;
  raw.command({"SET", "another", "0123456789abcdef.0123456789abcdef0123456789abcdef", "PX", "600000"});
  // Somebody who keeps the shared inbox alive.
  std::jthread keeper([&] { (void)shared.acquire("another", patient_for(30s, 60s), others.get_token()); });
  ASSERT_TRUE(eventually([&] { return channels() == 1 && raw.exists(queue_of("another")); }));
  Lease lease = taken(holder, key);
  std::stop_source source;
  End a, b;
  std::jthread first([&] { a = wait_once(shared, patient_for(30s, 60s), source.get_token()); });
  ASSERT_TRUE(await_queued(1));
  std::jthread second([&] { b = wait_once(of_b, patient_for(30s, 60s)); });
  ASSERT_TRUE(await_queued(2));
  proxy.refuse();
  // All that the client has for commands is gone; the subscription stays.
  EXPECT_GT(kill_named("shared", "normal"), 0);
  source.request_stop();
  first.join();
  proxy.refuse(false);
  EXPECT_EQ(a.outcome, AcquireOutcome::unknown);
  const Deadline released = LeaseClock::now();
  lease.release();
  second.join();
  EXPECT_EQ(b.outcome, AcquireOutcome::acquired);
  EXPECT_LT(b.at - released, 2s) << "the grant went to one who had left";
  EXPECT_TRUE(eventually([&] { return queued() == 0 && !raw.exists(key); }, 2s));
  others.request_stop();
}

TEST_F(QueueAndStops, AClaimThatIsRetriedWaitsNoLonger) {
  raw.command({"SET", key, "0123456789abcdef.0123456789abcdef0123456789abcdef", "PX", "600000"});
  Client client(server.url_unix());
  std::stop_source source;
  std::optional<Claim> claim;
  std::jthread waiter([&] { claim = claim_of(client.acquire(key, patient_for(30s, 20s), source.get_token())); });
  ASSERT_TRUE(await_queued(1));
  {
    const Stopped stopped(server);
    source.request_stop();
    waiter.join();
  }
  AcquireResult again = std::move(*claim).retry(deadline_in(5s));
  EXPECT_NE(again.outcome(), AcquireOutcome::acquired);
  EXPECT_EQ(queued(), 0);
}

}  // namespace
}  // namespace redlease
