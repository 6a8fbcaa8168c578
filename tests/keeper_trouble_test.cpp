// Leases that are kept: whatever passes in time costs none.
#include <random>

#include "keeper_support.hpp"

namespace redlease {
namespace {

using namespace testing_support;

// What stands still for a bit more than half of the ttl.
class KeptThroughAPause : public KeptLease {
 protected:
  static constexpr Millis ttl = 1s, pause = 550ms;

  // `rounds` times at random moments; one whose pause really was longer does not count against it.
  template <class Pause>
  void expect_kept(int rounds, Pause pause_of_server) {
    std::mt19937 random(std::random_device{}());
    Client client(server.url_tcp(), {.observer = events});
    std::optional<LeaseGuard> guard;
    int excused = 0;
    for (int i = 0; i < rounds; ++i) {
      if (!guard) guard.emplace(guarded(client, key, kept(ttl)));
      const Witness witness;
      pause_for(Millis(random() % 400));
      const Stopwatch watch;
      pause_of_server();
      const Millis paused = watch.elapsed_ms();
      pause_for(400ms);  // the next pause finds it renewed
      if (guard->held()) continue;
      ASSERT_TRUE(paused > pause + 10ms || witness.longest_stall() > 30ms)
          << "lost in round " << i << " by a pause of " << paused.count() << " ms, the machine's longest stall was "
          << witness.longest_stall().count() << " ms";
      guard.reset();
      if (++excused > 2 * rounds) FAIL() << "the machine stalls too much to tell";
    }
  }
};

TEST_F(KeptThroughAPause, OfTheServerForMoreThanHalfOfTheTtlAtAnyMoment) {
  expect_kept(10, [&] {
    const Stopped stopped(server);
    pause_for(pause);
  });
}

TEST_F(KeptThroughAPause, OfTheServerForTheSakeOfAScript) {
  truth.config_set("busy-reply-threshold", "10");
  expect_kept(4, [&] {
    RawClient endless(server.unix_socket());
    endless.send({"EVAL", "while true do end", "0"});
    pause_for(ttl / 2);
    (void)truth.command({"SCRIPT", "KILL"});
    (void)endless.receive();
  });
  EXPECT_GT(events->failed_renewals, 0) << "the test met no BUSY";
}

TEST_F(KeptThroughAPause, OfTheNetworkThatEndsWithABrokenConnection) {
  FaultProxy proxy(server.tcp());
  unless_stalled(50ms, [&]() -> std::string {
    Client client(proxy.url(), {.observer = events});
    const int before = events->renewals;
    LeaseGuard guard = guarded(client, key, kept(ttl));
    if (!eventually([&] { return events->renewals > before; })) return "never renewed";
    proxy.refuse();
    proxy.drop_all();
    pause_for(ttl / 2);
    proxy.refuse(false);
    return kept_for(guard, ttl, 2 * ttl);
  });
}

TEST_F(KeptLease, OutlivesConnectionsThatAreKilledAllTheTime) {
  unless_stalled(100ms, [&]() -> std::string {
    Client client(server.url_tcp(), {.observer = events});
    LeaseGuard guard = guarded(client, key, kept(600ms));
    const std::jthread killer([&](const std::stop_token& stop) {
      RawClient raw(server.unix_socket());
      while (!stop.stop_requested()) {
        raw.send({"CLIENT", "LIST", "TYPE", "normal"});
        const std::string list = raw.receive().text;
        // All but the test's own, which have no name.
        for (std::size_t at = 0; (at = list.find("id=", at)) != list.npos; ++at) {
          const std::string_view line = std::string_view(list).substr(at, list.find('\n', at) - at);
          if (!contains(line, " name=redlease")) continue;
          (void)raw.command({"CLIENT", "KILL", "ID", std::string(line.substr(3, line.find(' ') - 3))});
        }
        pause_for(50ms);
      }
    });
    return kept_for(guard, 600ms, 4s);
  });
  EXPECT_GT(events->connections, 4) << "the test killed none";
}

TEST_F(KeptLease, OutlivesAServerThatForgetsItsScriptsAllTheTime) {
  unless_stalled(100ms, [&]() -> std::string {
    Client client(server.url_tcp(), {.observer = events});
    LeaseGuard guard = guarded(client, key, kept(500ms));
    const std::jthread forgetter([&](const std::stop_token& stop) {
      RawClient raw(server.unix_socket());
      while (!stop.stop_requested()) {
        (void)raw.command({"SCRIPT", "FLUSH"});
        pause_for(5ms);
      }
    });
    return kept_for(guard, 500ms, 3s);
  });
}

TEST_F(KeptLease, OutlivesLatencyThatComesAndGoes) {
  FaultProxy proxy(server.tcp());
  unless_stalled(100ms, [&]() -> std::string {
    Client client(proxy.url(), {.observer = events});
    const int before = events->renewals;
    LeaseGuard guard(client, key, {.ttl = 1s, .op_timeout = 330ms});
    if (!eventually([&] { return events->renewals > before; })) return "never renewed";
    const std::jthread weather([&](const std::stop_token& stop) {
      std::mt19937 random(std::random_device{}());
      while (!stop.stop_requested()) {
        Faults faults;
        faults.up.delay = Millis(random() % 130);
        faults.down.delay = Millis(random() % 130);
        proxy.set(faults);
        pause_for(100ms);
      }
    });
    return kept_for(guard, 1s, 4s);
  });
}

TEST_F(KeptLease, ThatSomebodyMadePersistentSoonExpiresAgain) {
  Client client(server.url_tcp(), {.observer = events});
  const LeaseGuard guard = guarded(client, key, kept(1'500ms));
  for (int i = 0; i < 5; ++i) {
    const int before = events->renewals;
    ASSERT_EQ(truth.command({"PERSIST", key}).integer, 1);
    ASSERT_TRUE(eventually([&] { return truth.pttl(key) != -1; }));
    EXPECT_LE(events->renewals, before + 2) << "renewals went by and left it so";
    EXPECT_LE(truth.pttl(key), 1'500);
    pause_for(Millis(37 * i));
  }
  EXPECT_TRUE(guard.held());
}

TEST_F(KeptLease, OutlivesAServerThatComesBackWithItsData) {
  unless_stalled(100ms, [&]() -> std::string {
    Client client(server.url_tcp(), {.observer = events});
    const LeaseGuard guard = guarded(client, key, kept(6s));
    pause_for(1s);
    const Stopwatch watch;
    server.restart(true);
    truth = RawClient(server.unix_socket());
    if (watch.elapsed_ms() > 3s) return "";  // no wonder
    const int before = events->renewals;
    if (!eventually([&] { return events->renewals > before; }, 6s)) return "not renewed since";
    return guard.held() && truth.get(key) == guard.token().str() ? "" : "lost";
  });
}

}  // namespace
}  // namespace redlease
