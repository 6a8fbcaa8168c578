// How connections are shared, bounded, used again and replaced.
#include <atomic>
#include <thread>

#include "promise_support.hpp"
#include "support/foreground.hpp"
#include "support/scripted_server.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class PoolOfAClient : public OverBothWays {
 protected:
  FaultProxy proxy{address_of(server), front()};
  static constexpr std::string_view option = "ClientOptions::max_connections";
};
INSTANTIATE_TEST_SUITE_P(Over, PoolOfAClient, both_ways, name_of);

TEST_P(PoolOfAClient, ConnectsOnlyWhenItMustAndThenOnce) {
  Client lazy(proxy.url());
  EXPECT_EQ(proxy.connections(), 0U);
  for (int i = 0; i < 50; ++i) taken(lazy, key).release();
  EXPECT_EQ(proxy.connections(), 1U);
}

TEST_P(PoolOfAClient, ManyThreadsStayWithinTheBound) {
  Client bounded(proxy.url(), {.max_connections = 3});
  std::atomic<int> done{0};
  {
    std::vector<std::jthread> crew;
    for (int t = 0; t < 12; ++t) {
      crew.emplace_back([&, t] {
        for (int i = 0; i < 25; ++i) {
          Lease lease = taken(bounded, key + std::to_string(t), limited(10s, 60s));
          if (lease.renew() == RenewOutcome::renewed && lease.release() == ReleaseOutcome::released) ++done;
        }
      });
    }
  }
  EXPECT_EQ(done, 12 * 25);
  EXPECT_LE(proxy.connections(), 3U);
}

TEST_P(PoolOfAClient, WaitsForAConnectionWithinTheDeadlineAndNamesTheOption) {
  Client bounded(proxy.url(), {.max_connections = 1});
  ASSERT_TRUE(bounded.inspect(key).has_value());
  const auto before = proxy.newest().up_received;
  Faults late;
  late.down.delay = 600ms;
  proxy.set(late);
  std::jthread occupant([&] { (void)bounded.inspect(key); });
  ASSERT_TRUE(eventually([&] { return proxy.newest().up_received > before; }));
  const Stopwatch watch;
  const Error error = error_of(bounded.try_acquire(key, limited(150ms)));
  EXPECT_GE(watch.elapsed_ms(), 149ms);
  EXPECT_EQ(error.code, Errc::too_many_connections);
  EXPECT_TRUE(contains(error.detail, option)) << error.detail;
  expect_for_people(error, key, proxy.address().path.empty() ? "127.0.0.1" : proxy.address().path);
  // With time enough it is this one's turn afterwards.
  EXPECT_EQ(bounded.try_acquire(key, limited(5s)).outcome(), AcquireOutcome::acquired);
}

TEST_P(PoolOfAClient, AStopEndsTheWaitForAConnection) {
  Client bounded(proxy.url(), {.max_connections = 1});
  ASSERT_TRUE(reachable(bounded));
  proxy.withhold_replies();
  std::jthread occupant([&] { (void)bounded.inspect(key); });
  ASSERT_TRUE(eventually([&] { return proxy.newest().up_received > 100; }));
  std::stop_source source;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(50ms);
    source.request_stop();
  });
  const Stopwatch watch;
  const AcquireResult result =
      bounded.acquire(key, {.ttl = 30s, .wait = forever, .op_timeout = 900ms}, source.get_token());
  EXPECT_LE(watch.elapsed_ms(), 800ms) << "it waited for its op_timeout";
  EXPECT_EQ(error_of(result).code, Errc::cancelled) << describe(result);
}

TEST_P(PoolOfAClient, ConnectionsThatTheServerClosedAreReplacedBeforeAnythingIsWritten) {
  Client patient(url, {.name = "patient"});
  Lease lease = taken(patient, key);
  for (int i = 0; i < 5; ++i) {
    for (const RawReply& reply : {truth.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"})}) {
      EXPECT_GE(reply.integer, 1);
    }
    EXPECT_EQ(lease.renew(), RenewOutcome::renewed) << lease.last_error().detail;
  }
  EXPECT_EQ(lease.release(), ReleaseOutcome::released);
}

TEST_P(PoolOfAClient, AnIdleTimeOutOfTheServerIsNotNoticed) {
  truth.config_set("timeout", "1");
  Client patient(url);
  Lease lease = taken(patient, key);
  RawClient watcher(server.tcp());
  const bool closed = eventually(
      [&] {
        return !contains(watcher.command({"CLIENT", "LIST"}).text, "name=redlease");
      },
      10s);
  const RenewOutcome renewed = lease.renew();
  const AcquireResult another = patient.try_acquire(key + "2");
  RawClient(server.tcp()).config_set("timeout", "0");
  EXPECT_TRUE(closed);
  EXPECT_EQ(renewed, RenewOutcome::renewed) << lease.last_error().detail;
  EXPECT_EQ(another.outcome(), AcquireOutcome::acquired) << describe(another);
}

TEST_P(PoolOfAClient, TheServerSeesItsNameAndAsManyAsAreOpen) {
  Client named(url, {.name = "just-me"});
  ASSERT_TRUE(reachable(named));
  EXPECT_TRUE(contains(truth.command({"CLIENT", "LIST"}).text, "name=just-me "));
}

TEST_P(PoolOfAClient, ItsConnectionsAreClosedWithIt) {
  {
    Client named(url, {.name = "passing"});
    ASSERT_TRUE(reachable(named));
  }
  EXPECT_TRUE(eventually([&] { return !contains(truth.command({"CLIENT", "LIST"}).text, "name=passing "); }));
}

TEST_P(PoolOfAClient, AStuckReplyDoesNotHoldUpOtherNames) {
  Client stuck(proxy.url());
  ASSERT_TRUE(reachable(stuck));
  proxy.withhold_replies();
  Claim claim = claim_of(stuck.try_acquire(key, limited(150ms)));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(taken(stuck, key + std::to_string(i)).release(), ReleaseOutcome::released);
  }
  EXPECT_EQ(proxy.connections(), 2U);
}

TEST_P(PoolOfAClient, ConnectionsThatOweAReplyAreKeptButNotCountedAndNotForEver) {
  Client doubtful(std::make_shared<Foreground>(proxy.url(), 1));
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(reachable(doubtful));
    proxy.withhold_replies();
    const std::string of = key + std::to_string(i);
    { const Claim claim = claim_of(doubtful.try_acquire(of, limited(100ms))); }
    EXPECT_TRUE(eventually([&] { return !truth.exists(of); })) << "withdrawn behind it";
  }
  EXPECT_EQ(proxy.connections(), 5U);
  EXPECT_TRUE(proxy.stats(0).open) << "closed while it owed a reply";
  proxy.heal();
  EXPECT_TRUE(eventually([&] {
    if (!doubtful.ping().has_value()) return false;
    for (std::size_t i = 0; i < 5; ++i) {
      if (proxy.stats(i).open) return false;
    }
    return true;
  })) << "they have answered, so nothing keeps them";
}

TEST_P(PoolOfAClient, TheSameNameInTwoDatabasesIsTwoLeases) {
  const std::string other = GetParam() == Way::tcp ? url + "/1" : url + "?db=1";
  Client elsewhere(other);
  const Lease here = taken(client, key);
  const Lease there = taken(elsewhere, key);
  EXPECT_TRUE(here.held() && there.held());
}

}  // namespace
}  // namespace redlease
