// Loss is an event of a timer: it comes on time whatever the server and the network do.
#include <ctime>

#include "keeper_support.hpp"
#include "support/monitor.hpp"
#include "tls_redis_server.hpp"

namespace redlease {
namespace {

using namespace testing_support;

enum class Trouble { withheld, refused, black_hole };

class SignalOfLoss : public OnItsOwnServer {
 protected:
  static constexpr Millis ttl = 600ms;

  // "" if all is told at the deadline when the network fails: before the first renewal or behind one.
  std::string fault_with(Trouble trouble, const std::string& url, FaultProxy& proxy,
                         ClientOptions client_options = {}) {
    proxy.refuse(false);
    proxy.heal();
    truth.flushall();
    Told told;
    LeaseOptions options = kept(ttl);
    options.on_lost = told.recorder();
    client_options.observer = events;
    Client client(url, client_options);
    const int before = events->renewals;
    if (!eventually([&] { return client.ping().has_value(); })) return "no server";
    const LeaseGuard guard = guarded(client, key, options);
    const StopTime stop(guard.stop_token());
    if (trouble == Trouble::black_hole) {
      proxy.on_new(black_hole());  // the keeper has no connection yet
    } else if (!eventually([&] { return events->renewals > before; })) {
      return "never renewed";
    }
    if (trouble == Trouble::withheld) {
      proxy.on_new(black_hole());
      proxy.withhold_replies();
    } else if (trouble == Trouble::refused) {
      proxy.refuse();
      proxy.drop_all();
    }
    if (!eventually([&] { return told.times > 0; }, 3s)) return "nobody was told";
    EXPECT_FALSE(guard.held());
    EXPECT_EQ(guard.loss(), LossCause::deadline);
    EXPECT_EQ(told.cause, LossCause::deadline);
    pause_for(100ms);
    EXPECT_EQ(told.times, 1);
    std::string fault = fault_of("the stop", stop.at(), guard.deadline());
    return fault.empty() ? fault_of("on_lost", told.at, guard.deadline()) : fault;
  }
};

TEST_F(SignalOfLoss, ComesAtTheDeadlineWhereRepliesStayAway) {
  FaultProxy proxy(server.tcp());
  unless_stalled(10ms, [&] { return fault_with(Trouble::withheld, proxy.url(), proxy); });
}

TEST_F(SignalOfLoss, ComesAtTheDeadlineWhereNobodyListens) {
  FaultProxy proxy(server.tcp());
  unless_stalled(10ms, [&] { return fault_with(Trouble::refused, proxy.url(), proxy); });
}

TEST_F(SignalOfLoss, ComesAtTheDeadlineWhereConnectionsHang) {
  FaultProxy proxy(server.tcp());
  unless_stalled(10ms, [&] { return fault_with(Trouble::black_hole, proxy.url(), proxy); });
}

TEST_F(SignalOfLoss, ComesAtTheDeadlineOverUnixSocketsToo) {
  FaultProxy proxy(server.unix_socket(), FaultProxy::Front::unix_socket);
  for (const Trouble trouble : {Trouble::withheld, Trouble::refused}) {
    unless_stalled(10ms, [&] { return fault_with(trouble, proxy.url(), proxy); });
  }
}

class SignalOfLossOverTls : public SignalOfLoss {
 protected:
  SignalOfLossOverTls() { truth = RawClient(tls_server.tcp()); }

  const TlsRedisServer tls_server;
};

TEST_F(SignalOfLossOverTls, ComesAtTheDeadline) {
  FaultProxy proxy(ServerAddress{{}, tls_server.port()});
  const std::string url = TlsRedisServer::url(proxy.port());
  for (const Trouble trouble : {Trouble::withheld, Trouble::refused, Trouble::black_hole}) {
    unless_stalled(10ms, [&] { return fault_with(trouble, url, proxy, tls_server.options()); });
  }
}

TEST_F(SignalOfLoss, AsksToStopAheadOfTheDeadlineWhereWanted) {
  FaultProxy proxy(server.tcp());
  unless_stalled(10ms, [&]() -> std::string {
    proxy.heal();
    truth.flushall();
    Told told;
    LeaseOptions options = kept(900ms);
    options.stop_before = 300ms;
    options.on_lost = told.recorder();
    Client client(proxy.url());
    if (!eventually([&] { return client.ping().has_value(); })) return "no server";
    LeaseGuard guard = guarded(client, key, options);
    const StopTime stop(guard.stop_token());
    proxy.on_new(black_hole());
    if (!eventually([&] { return stop.stopped(); })) return "never told to stop";
    const bool held = guard.held();
    if (LeaseClock::now() < guard.deadline()) {
      EXPECT_TRUE(held);
      EXPECT_EQ(told.times, 0) << "it is not lost yet";
    }
    if (!eventually([&] { return told.times > 0; })) return "nobody was told";
    std::string fault = fault_of("the stop", stop.at(), guard.deadline() - 300ms);
    return fault.empty() ? fault_of("on_lost", told.at, guard.deadline()) : fault;
  });
}

TEST_F(SignalOfLoss, AsksToStopWhileARenewalIsOnItsWayAndDoesNotSpin) {
  FaultProxy proxy(server.tcp());
  unless_stalled(100ms, [&]() -> std::string {
    proxy.heal();
    truth.flushall();
    Client client(proxy.url(), {.observer = events});
    const int before = events->renewals;
    LeaseGuard guard(client, key, {.ttl = 2s, .op_timeout = 660ms, .stop_before = 900ms});
    const StopTime stop(guard.stop_token());
    if (!eventually([&] { return events->renewals > before; })) return "never renewed";
    proxy.on_new(black_hole());
    proxy.withhold_replies();
    const std::clock_t cpu = std::clock();
    if (!eventually([&] { return stop.stopped(); })) return "never told to stop";
    EXPECT_TRUE(guard.held() || LeaseClock::now() >= guard.deadline());
    if (!eventually([&] { return guard.loss().has_value(); })) return "never lost";
    EXPECT_LT(std::clock() - cpu, CLOCKS_PER_SEC / 2);
    const auto off = stop.at() - (guard.deadline() - 900ms);
    return off < 0ms || off > 200ms ? "asked to stop " + in_ms(off) + " late" : "";
  });
}

TEST_F(SignalOfLoss, ComesAtMaxHoldAndTheNextGetsItSoon) {
  unless_stalled(10ms, [&]() -> std::string {
    truth.flushall();
    Told told;
    LeaseOptions options = kept(600ms);
    options.max_hold = 1'500ms;
    options.on_lost = told.recorder();
    Client client(server.url_tcp(), {.observer = events});
    const int before = events->renewals;
    const Deadline earliest = LeaseClock::now() + 1'500ms;
    LeaseGuard guard = guarded(client, key, options);
    const Deadline latest = LeaseClock::now() + 1'500ms;
    const StopTime stop(guard.stop_token());
    Contender next(server.url_unix(), key);
    if (!eventually([&] { return next.has_it() && told.times > 0; })) return "nobody got it, or nobody was told";
    EXPECT_GT(events->renewals, before + 1);
    EXPECT_EQ(told.cause, LossCause::max_hold);
    EXPECT_EQ(guard.loss(), LossCause::max_hold);
    EXPECT_GE(guard.deadline(), earliest);
    EXPECT_LE(guard.deadline(), latest);
    EXPECT_GT(next.at(), guard.deadline());
    EXPECT_EQ(guard.release(), ReleaseOutcome::not_held);
    EXPECT_TRUE(truth.exists(key)) << "taken from the next";
    if (next.at() > guard.deadline() + 1s) return "the next waited for long";
    return fault_of("the stop", stop.at(), guard.deadline());
  });
}

TEST_F(SignalOfLoss, AtMaxHoldLeavesNothingOnTheServerForTheRestOfALongTtl) {
  LeaseOptions options = kept(30s);
  options.max_hold = 300ms;
  Client client(server.url_tcp(), {.observer = events});
  const LeaseGuard guard = guarded(client, key, options);
  EXPECT_TRUE(eventually([&] { return !truth.exists(key); }));
  EXPECT_EQ(guard.loss(), LossCause::max_hold);
  EXPECT_TRUE(eventually([&] { return events->withdrawn == 1; }));
  EXPECT_EQ(events->renewals, 0) << "it could gain nothing";
}

TEST_F(SignalOfLoss, ComesThoughNothingIsRenewedAndNothingIs) {
  unless_stalled(10ms, [&]() -> std::string {
    truth.flushall();
    Client client(server.url_tcp());
    Monitor monitor(server.unix_socket());
    Told told;
    LeaseOptions options = watched(500ms);
    options.on_lost = told.recorder();
    const LeaseGuard guard = guarded(client, key, options);
    const StopTime stop(guard.stop_token());
    while (guard.held()) {
      EXPECT_LE(truth.pttl(key), 500);
      pause_for(10ms);
    }
    if (!eventually([&] { return told.times > 0; })) return "nobody was told";
    if (!eventually([&] { return !truth.exists(key); }, 200ms)) return "it lives on";
    for (const MonitorLine& line : monitor.lines()) EXPECT_NE(line.name(), "PEXPIRE") << line.line;
    EXPECT_EQ(told.cause, LossCause::deadline);
    return fault_of("the stop", stop.at(), guard.deadline());
  });
}

}  // namespace
}  // namespace redlease
