// A waiter's connections cut behind each byte, compared with the server's truth.
#include <array>

#include "queue_support.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class QueueCuts : public QueueFaults, public ::testing::WithParamInterface<std::size_t> {
 protected:
  enum Connection { command, inbox };  // in the order in which a waiter makes them

  struct Sizes {
    std::uint64_t up, down;
  };
  struct End {
    AcquireOutcome outcome{};
    std::string token{}, words{};
    Deadline at{};
    bool stayed{false};
  };

  ClientOptions options() const {
    ClientOptions with;
    with.max_inboxes = GetParam();
    with.name = "waiter";
    return with;
  }

  End wait_once(Client& client, Millis wait, std::stop_token stop = {}) {
    End end;
    AcquireResult result = client.acquire(key, patient_for(30s, wait, 1s), std::move(stop));
    end.at = LeaseClock::now();
    end.outcome = result.outcome();
    end.words = describe(result);
    if (auto lease = std::move(result).lease()) {
      end.token = lease->token().str();
      end.stayed = stay(room, *std::move(lease));
    }
    return end;
  }

  // Waits behind a holder who releases once it is queued; the n-th connection has these faults. What came of it.
  End hand_over(Connection which, const Faults& faults) {
    if (which == inbox) proxy.on_next({});
    proxy.on_next(faults);
    Lease lease = taken(holder, key);
    Client client(proxy.url(), options());
    End end;
    {
      std::jthread waiter([&] { end = wait_once(client, 20s); });
      EXPECT_TRUE(await_queued(1, 3s)) << queued() << " entries";
      released_at = LeaseClock::now();
      lease.release();
    }
    proxy.heal();
    return end;
  }

  Sizes measure(Connection which) {
    const auto before = proxy.connections();
    (void)hand_over(which, {});
    const auto stats = proxy.stats(before + static_cast<std::size_t>(which));
    return {stats.up, stats.down};
  }

  void cut_everywhere(Connection which) {
    (void)measure(which);  // the server knows the scripts now
    const Sizes whole = measure(which);
    ASSERT_GT(whole.up, 50U);
    ASSERT_GT(whole.down, 50U);
    for (const bool up : {true, false}) {
      const std::uint64_t size = up ? whole.up : whole.down;
      // The handshake and the long requests, which begin and end alike, in steps.
      const std::uint64_t step = size > 400 ? 3 : 1;
      for (std::uint64_t bytes = 0; bytes <= size + 2; bytes += step) {
        Faults faults;
        (up ? faults.up : faults.down).cut_after = bytes;
        faults.reset = bytes % 2 == 1;
        const End end = hand_over(which, faults);
        const std::string where = (up ? " up " : " down ") + std::to_string(bytes);
        ASSERT_EQ(end.outcome, AcquireOutcome::acquired) << end.words << where;
        EXPECT_TRUE(end.stayed) << where;
        if (end.at - released_at > 200ms) ++slow;
        EXPECT_LT(end.at - released_at, 6s) << "more than a heartbeat" << where;
        ASSERT_TRUE(eventually([&] { return !raw.exists(key); }, 2s)) << where;
        ++cuts;
      }
    }
    EXPECT_LE(slow, cuts / 20) << "waited for a heartbeat though it could have known";
    expect_exclusion();
    expect_nothing_left(1s);
    expect_no_queue();
  }

  FaultProxy proxy{server.unix_socket()};
  Client holder{server.url_unix()};
  Deadline released_at{};
  int slow{0}, cuts{0};
};
INSTANTIATE_TEST_SUITE_P(WithInboxes, QueueCuts, ::testing::Values(64, 0));

TEST_P(QueueCuts, OfTheCommandConnectionNeverLoseAGrant) { cut_everywhere(command); }

TEST_P(QueueCuts, OfTheInboxConnectionNeverLoseAGrant) { cut_everywhere(inbox); }

// Stopped while it waits, and its farewell is cut: it is out of the queue all the same, or passed over.
TEST_P(QueueCuts, OfAFarewellNeverLoseAGrant) {
  Client of_b(server.url_unix());
  std::uint64_t size = 0;
  std::array<int, 4> seen{};
  // Somebody who keeps a shared inbox alive.
  Client client(proxy.url(), options());
  raw.command({"SET", "another", "0123456789abcdef.0123456789abcdef0123456789abcdef", "PX", "600000"});
  std::stop_source others;
  std::jthread companion([&] { (void)client.acquire("another", patient_for(30s, 600s), others.get_token()); });
  ASSERT_TRUE(eventually([&] { return raw.exists(queue_of("another")); }));
  for (std::uint64_t bytes = 0; bytes <= size + 5; bytes += 5) {
    ASSERT_TRUE(reachable(client));
    Lease lease = taken(holder, key);
    std::stop_source source;
    End a, b;
    std::jthread first([&] { a = wait_once(client, 60s, source.get_token()); });
    ASSERT_TRUE(await_queued(1));
    std::jthread second([&] { b = wait_once(of_b, 60s); });
    ASSERT_TRUE(await_queued(2));
    // So that its farewell needs a new connection, which these faults are for.
    const auto before = proxy.connections();
    Faults faults;
    if (size > 0) faults.up.cut_after = bytes;
    proxy.on_next(faults);
    EXPECT_GT(kill_named("waiter", "normal"), 0);
    source.request_stop();
    first.join();
    if (size == 0 && proxy.connections() > before) size = proxy.stats(before).up;
    ++seen[static_cast<std::size_t>(a.outcome)];
    const Deadline at = LeaseClock::now();
    lease.release();
    second.join();
    ASSERT_EQ(b.outcome, AcquireOutcome::acquired) << b.words;
    EXPECT_LT(b.at - at, 2s) << "the grant went to one who had left; cut after " << bytes;
    ASSERT_TRUE(eventually([&] { return !raw.exists(key); }, 2s)) << bytes;
    proxy.heal();
  }
  EXPECT_GT(seen[static_cast<std::size_t>(AcquireOutcome::unknown)], 0);
  EXPECT_GT(seen[static_cast<std::size_t>(AcquireOutcome::unavailable)], 0);
  expect_exclusion();
  others.request_stop();
}

}  // namespace
}  // namespace redlease
