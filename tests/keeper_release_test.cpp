// The end of a lease ends its keeping: at once, on every path, and nothing on its way undoes it.
#include "keeper_support.hpp"
#include "support/monitor.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class ReleasedLease : public OnItsOwnServer {
 protected:
  // What was said of a token since the monitor was cleared.
  static std::string said_of(Monitor& monitor, const std::string& token) {
    std::string lines;
    for (const MonitorLine& line : monitor.lines()) {
      if (std::find(line.argv.begin(), line.argv.end(), token) != line.argv.end()) lines += line.line + "\n";
    }
    return lines;
  }
};

// The renewal's request, or its answer, is held up on the way.
TEST_F(ReleasedLease, DoesNotWaitForARenewalOnItsWayAndIsNotUndoneByIt) {
  FaultProxy proxy(server.tcp());
  for (const bool request_late : {true, false}) {
    unless_stalled(30ms, [&]() -> std::string {
      truth.flushall();
      proxy.heal();
      Told told;
      LeaseOptions options = kept(1'500ms);
      options.on_lost = told.recorder();
      Client client(proxy.url(), {.observer = events});
      const int renewals = events->renewals;
      LeaseGuard guard = guarded(client, key, options);
      const StopTime stop(guard.stop_token());
      if (!eventually([&] { return events->renewals > renewals; })) return "never renewed";
      // The newest connection is the keeper's; releases take another.
      Faults late;
      (request_late ? late.up : late.down).delay = 300ms;
      proxy.set(late);
      const auto sent = proxy.newest().up_received;
      if (!eventually([&] { return proxy.newest().up_received > sent; })) return "no second renewal";
      const auto answered = proxy.newest().down;
      const Stopwatch watch;
      const ReleaseOutcome outcome = guard.release();
      const Millis took = watch.elapsed_ms();
      if (outcome != ReleaseOutcome::released) return "not released: " + guard.last_error().detail;
      EXPECT_FALSE(truth.exists(key));
      if (took > 150ms) return "the release waited " + std::to_string(took.count()) + " ms";
      if (!eventually([&] { return proxy.newest().down > answered; })) return "the renewal was never answered";
      pause_for(100ms);
      EXPECT_FALSE(truth.exists(key)) << "the renewal has undone it";
      EXPECT_EQ(told.times, 0);
      EXPECT_FALSE(stop.stopped());
      EXPECT_EQ(guard.loss(), std::nullopt);
      EXPECT_EQ(events->losses, 0);
      EXPECT_EQ(events->renewals, renewals + 1);
      return "";
    });
  }
}

TEST_F(ReleasedLease, IsRenewedNoMoreWhicheverWayItEnded) {
  constexpr Millis ttl = 300ms;
  Client client(server.url_tcp(), {.observer = events});
  Monitor monitor(server.unix_socket());
  using Ways = std::vector<std::pair<const char*, std::function<void(LeaseGuard)>>>;
  const Ways ways{
      {"release()", [](LeaseGuard guard) { (void)guard.release(); }},
      {"scope", [](LeaseGuard) {}},
      {"move over it", [&](LeaseGuard guard) { guard = LeaseGuard(client, "other", kept(ttl)); }},
      {"exception",
       [](LeaseGuard guard) {
         try {
           const LeaseGuard mine = std::move(guard);
           throw std::runtime_error("the work failed");
         } catch (const std::runtime_error&) {
         }
       }},
  };
  for (const auto& way : ways) {
    const auto& name = way.first;
    unless_stalled(50ms, [&]() -> std::string {
      const int before = events->renewals;
      LeaseGuard guard = guarded(client, key, kept(ttl));
      const std::string token = guard.token().str();
      if (!eventually([&] { return events->renewals > before; })) return "never renewed";
      if (said_of(monitor, token).empty()) return "the test sees no renewals";
      way.second(std::move(guard));
      monitor.clear();
      EXPECT_FALSE(truth.exists(key)) << name;
      pause_for(2 * ttl);
      EXPECT_EQ(said_of(monitor, token), "") << name;
      EXPECT_FALSE(truth.exists(key)) << name;
      return "";
    });
  }
  EXPECT_EQ(events->losses, 0);
}

TEST_F(ReleasedLease, ThatWasAbandonedIsLeftToItsTtl) {
  Client client(server.url_tcp(), {.observer = events});
  Monitor monitor(server.unix_socket());
  Lease lease = taken(client, key, kept(400ms));
  const std::string token = lease.token().str();
  lease.abandon();
  monitor.clear();
  EXPECT_TRUE(truth.exists(key));
  EXPECT_TRUE(eventually([&] { return !truth.exists(key); }));
  EXPECT_EQ(said_of(monitor, token), "");
  EXPECT_EQ(events->withdrawn, 0);
}

TEST_F(ReleasedLease, HandedOverIsKeptByTheGuardThatAdoptedIt) {
  Client giver(server.url_tcp());
  Client taker(server.url_unix(), {.observer = events});
  unless_stalled(100ms, [&]() -> std::string {
    truth.flushall();
    Lease lease = taken(giver, key, kept(600ms));
    lease.abandon();
    const LeaseGuard guard(taker, taker.adopt(key, lease.token()), kept(600ms));
    const int before = events->renewals;
    for (const Stopwatch watch; watch.elapsed_ms() < 2s;) {
      if (!guard.held()) return "lost";
      EXPECT_LE(truth.pttl(key), 600);
      pause_for(10ms);
    }
    EXPECT_GT(events->renewals, before + 3);
    EXPECT_EQ(guard.fencing_token(), lease.fencing_token());
    return "";
  });
}

class TakenOverLease : public ReleasedLease {
 protected:
  Client client{server.url_tcp(), {.observer = events}};
};

TEST_F(TakenOverLease, HasTheNewTtlFromTheNextRenewalOn) {
  Lease lease = taken(client, key, kept(3s));
  const Deadline before = lease.deadline();
  const LeaseGuard guard(client, std::move(lease), kept(60s));
  EXPECT_TRUE(eventually([&] { return truth.pttl(key) > 40'000; }));
  EXPECT_TRUE(eventually([&] { return guard.deadline() > before + 40s; }));
}

TEST_F(TakenOverLease, IsNotShortenedByASmallerTtlAndNotRenewedForIt) {
  Lease lease = taken(client, key, kept(60s));
  const Deadline before = lease.deadline();
  const LeaseGuard guard(client, std::move(lease), kept(300ms));
  EXPECT_EQ(guard.deadline(), before);
  pause_for(700ms);
  EXPECT_TRUE(guard.held());
  EXPECT_GT(truth.pttl(key), 40'000);
}

TEST_F(TakenOverLease, EndsAtTheNewMaxHoldCountedFromTheAcquisition) {
  Lease lease = taken(client, key, kept(30s));
  const Deadline acquired_before = LeaseClock::now();
  LeaseOptions options = kept(30s);
  options.max_hold = 500ms;
  const LeaseGuard guard(client, std::move(lease), options);
  EXPECT_LE(guard.deadline(), acquired_before + 500ms);
  EXPECT_TRUE(eventually([&] { return guard.loss() == LossCause::max_hold && !truth.exists(key); }));
}

TEST_F(TakenOverLease, IsWatchedOnlyWhereTheNewOptionsSaySo) {
  Told told;
  Lease lease = taken(client, key, kept(500ms));
  LeaseOptions options = watched(500ms);
  options.on_lost = told.recorder();
  const LeaseGuard guard(client, std::move(lease), options);
  EXPECT_TRUE(eventually([&] { return told.times == 1; }));
  EXPECT_EQ(events->renewals, 0);
}

}  // namespace
}  // namespace redlease
