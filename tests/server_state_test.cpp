// Servers in trouble: what each state proves, and that it passes.
#include <filesystem>
#include <thread>

#include "promise_support.hpp"
#include "support/monitor.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class ServerState : public ::testing::Test {
 protected:
  RedisServer& server{shared_server()};
  RawClient truth{server.tcp()};
  const std::string key{fresh_key()};
  const std::string url{server.url_tcp()};
  Client client{url};

  void expect_not_ready(const AcquireResult& result, const std::string& word) {
    const Error error = error_of(result);
    EXPECT_EQ(error.code, Errc::not_ready) << error.detail;
    EXPECT_TRUE(contains(error.detail, word)) << error.detail;
    expect_for_people(error, key, "127.0.0.1:" + std::to_string(server.port()));
  }
};

TEST_F(ServerState, WithoutMemoryNothingIsGrantedButRenewalAndReleaseWork) {
  Lease lease = taken(client, key + "held");
  truth.config_set("maxmemory", "1");
  const AcquireResult refused = client.try_acquire(key);
  const RenewOutcome renewed = lease.renew();
  const ReleaseOutcome released = lease.release();
  truth.config_set("maxmemory", "0");
  expect_not_ready(refused, "OOM");
  EXPECT_FALSE(truth.exists(key));
  EXPECT_EQ(renewed, RenewOutcome::renewed);
  EXPECT_EQ(released, ReleaseOutcome::released);
  EXPECT_EQ(client.try_acquire(key).outcome(), AcquireOutcome::acquired);
}

TEST_F(ServerState, AReplicaIsNotReadyAndNothingIsWritten) {
  Lease lease = taken(client, key + "held");
  truth.command({"PEXPIRE", key + "held", "20000"});  // so that a renewal must write
  truth.command({"REPLICAOF", "127.0.0.1", "1"});
  const AcquireResult refused = client.try_acquire(key);
  const RenewOutcome renewed = lease.renew();
  const ReleaseOutcome released = lease.release();
  const Error error = lease.last_error();
  EXPECT_TRUE(truth.exists(key + "held")) << "told as not executed";
  truth.command({"REPLICAOF", "NO", "ONE"});
  expect_not_ready(refused, "READONLY");
  EXPECT_FALSE(truth.exists(key));
  EXPECT_EQ(renewed, RenewOutcome::unavailable);
  EXPECT_EQ(released, ReleaseOutcome::unavailable);
  EXPECT_EQ(error.code, Errc::not_ready);
  EXPECT_TRUE(eventually([&] { return !truth.exists(key + "held"); })) << "given back as soon as that can be";
}

TEST_F(ServerState, TooFewReplicasAreNotReadyAndTheReleaseIsMadeUpForAfterwards) {
  Lease lease = taken(client, key + "held");
  truth.command({"PEXPIRE", key + "held", "20000"});  // so that a renewal must write
  truth.config_set("min-replicas-to-write", "1");
  const AcquireResult refused = client.try_acquire(key);
  const RenewOutcome renewed = lease.renew();
  const bool still_held = lease.held();
  Lease given = std::move(lease);
  const ReleaseOutcome released = given.release();
  const Error error = given.last_error();
  truth.config_set("min-replicas-to-write", "0");
  expect_not_ready(refused, "NOREPLICAS");
  EXPECT_FALSE(truth.exists(key));
  EXPECT_EQ(renewed, RenewOutcome::unavailable);
  EXPECT_TRUE(still_held);
  EXPECT_EQ(released, ReleaseOutcome::unavailable) << "a failed release is not silent";
  EXPECT_TRUE(contains(error.detail, "NOREPLICAS")) << error.detail;
  EXPECT_TRUE(eventually([&] { return !truth.exists(key + "held"); }, 15s)) << "nobody made up for the release";
}

TEST_F(ServerState, AFailedSaveIsNotReadyAndNoReleaseIsSilent) {
  RedisServer saving({"save 3600 100000", "dbfilename taken.rdb"});
  RawClient raw(saving.tcp());
  Client of_saving(saving.url_tcp());
  Lease lease = taken(of_saving, key);
  std::filesystem::create_directories(saving.dir() + "/taken.rdb/x");
  raw.command({"BGSAVE"});
  ASSERT_TRUE(eventually([&] { return raw.info("rdb_last_bgsave_status") == "err"; })) << saving.log();
  const Error error = error_of(of_saving.try_acquire(key + "free"));
  EXPECT_EQ(error.code, Errc::not_ready);
  EXPECT_TRUE(contains(error.detail, "MISCONF")) << error.detail;
  EXPECT_FALSE(raw.exists(key + "free"));
  EXPECT_EQ(lease.release(), ReleaseOutcome::unavailable);
  EXPECT_TRUE(contains(lease.last_error().detail, "MISCONF")) << lease.last_error().detail;
  EXPECT_TRUE(raw.exists(key));
}

TEST_F(ServerState, ABusyServerIsNotReadyAndServesAgainAfterwards) {
  truth.config_set("busy-reply-threshold", "20");
  ASSERT_TRUE(reachable(client));
  Lease lease = taken(client, key + "held");
  RawClient looper(server.tcp());
  looper.send({"EVAL", "while true do end", "0"});
  ASSERT_TRUE(eventually([&] { return truth.command({"PING"}).text.starts_with("BUSY"); }));
  const AcquireResult refused = client.try_acquire(key);
  Client fresh(url);
  const AcquireResult refused_at_once = fresh.try_acquire(key);
  const RenewOutcome renewed = lease.renew();
  truth.command({"SCRIPT", "KILL"});
  EXPECT_EQ(looper.receive().kind, RawReply::Kind::error);
  truth.config_set("busy-reply-threshold", "5000");
  expect_not_ready(refused, "BUSY");
  expect_not_ready(refused_at_once, "BUSY");
  EXPECT_EQ(renewed, RenewOutcome::unavailable);
  EXPECT_FALSE(truth.exists(key));
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(taken(client, key).release(), ReleaseOutcome::released);
    ASSERT_EQ(lease.renew(), RenewOutcome::renewed);
  }
}

class LoadingServer : public ServerState {
 protected:
  // About two seconds of loading.
  LoadingServer() {
    RawClient raw(slow.tcp());
    for (int i = 0; i < 100; ++i) raw.set("filler" + std::to_string(i), std::string(4'096, 'x'));
    slow.restart(true, Await::answer);
  }
  RedisServer slow{{"key-load-delay 20000", "loading-process-events-interval-bytes 1024", "rdbcompression no"}};
  Client of_slow{slow.url_tcp()};
};

TEST_F(LoadingServer, IsNotReady) {
  const AcquireResult refused = of_slow.try_acquire(key);
  const Error error = error_of(refused);
  EXPECT_EQ(error.code, Errc::not_ready) << error.detail;
  EXPECT_TRUE(contains(error.detail, "LOADING")) << error.detail;
}

TEST_F(LoadingServer, IsWaitedForUntilItHasLoaded) {
  const AcquireResult result = of_slow.acquire(key, {.ttl = 30s, .wait = 20s});
  EXPECT_EQ(result.outcome(), AcquireOutcome::acquired) << describe(result);
}

TEST_F(LoadingServer, IsTheLastTruthOfAWaitThatEndsBefore) {
  const Stopwatch watch;
  const AcquireResult result = of_slow.acquire(key, {.ttl = 30s, .wait = 300ms});
  EXPECT_LE(watch.elapsed_ms(), 1s);
  EXPECT_TRUE(contains(error_of(result).detail, "LOADING")) << describe(result);
}

TEST_F(ServerState, ARestartIsALossForTheHolderAndNothingToTheNextCall) {
  RedisServer mortal;
  Client of_mortal(mortal.url_tcp());
  Lease lease = taken(of_mortal, key);
  mortal.restart();
  EXPECT_EQ(lease.renew(), RenewOutcome::lost) << lease.last_error().detail;
  EXPECT_EQ(lease.loss(), LossCause::gone);
  mortal.restart();
  const AcquireResult result = of_mortal.try_acquire(key);
  EXPECT_EQ(result.outcome(), AcquireOutcome::acquired) << describe(result);
}

TEST_F(ServerState, AServerThatGoesAwayForEverIsToldWithTheLeaseIntactUntilItsDeadline) {
  RedisServer mortal;
  Client of_mortal(mortal.url_tcp());
  Lease lease = taken(of_mortal, key);
  mortal.kill9();
  const RenewOutcome outcome = lease.renew();
  EXPECT_TRUE(outcome == RenewOutcome::unavailable || outcome == RenewOutcome::unknown) << to_string(outcome);
  EXPECT_TRUE(lease.held());
  expect_for_people(lease.last_error(), key, "127.0.0.1:" + std::to_string(mortal.port()));
  EXPECT_NE(lease.release(), ReleaseOutcome::released);
}

TEST_F(ServerState, TooManyClientsIsUnavailableAndPasses) {
  RawClient one(server.tcp());
  ASSERT_EQ(one.command({"PING"}).text, "PONG");
  truth.config_set("maxclients", truth.info("connected_clients"));
  Client refused(url);
  const AcquireResult result = refused.try_acquire(key);
  truth.config_set("maxclients", "10000");
  const Error error = error_of(result);
  EXPECT_TRUE(contains(error.detail, "max number of clients")) << error.detail;
  EXPECT_FALSE(truth.exists(key));
  EXPECT_EQ(refused.try_acquire(key).outcome(), AcquireOutcome::acquired);
}

TEST_F(ServerState, AClusterNodeWithoutTheSlotIsUnsupportedAndPointsToTheSchemeForClusters) {
  RedisServer node({"cluster-enabled yes"});
  RawClient raw(node.tcp());
  Client of_node(node.url_tcp());
  const Error down = error_of(of_node.try_acquire(key));
  EXPECT_EQ(down.code, Errc::not_ready) << down.detail;
  EXPECT_TRUE(contains(down.detail, "CLUSTERDOWN")) << down.detail;
  // All slots are its own: then it serves.
  raw.command({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"});
  const AcquireResult result = of_node.acquire(key, {.wait = 20s});
  ASSERT_EQ(result.outcome(), AcquireOutcome::acquired) << describe(result);
  for (const std::string name : {"{a}b", "a{b}{c}", "x"}) {
    EXPECT_EQ(taken(of_node, name).release(), ReleaseOutcome::released) << name;
  }
  const Error crossed = error_of(of_node.acquire("a}b{c", {.wait = forever}));
  EXPECT_EQ(crossed.code, Errc::unsupported) << crossed.detail;
}

TEST_F(ServerState, WithoutScriptCommandEverythingWorks) {
  RedisServer plain({"rename-command SCRIPT \"\"", "rename-command HELLO \"\""});
  Client of_plain(plain.url_tcp());
  Lease lease = taken(of_plain, key);
  EXPECT_EQ(lease.renew(), RenewOutcome::renewed);
  EXPECT_TRUE(of_plain.inspect(key).value().held);
  EXPECT_EQ(lease.release(), ReleaseOutcome::released);
}

TEST_F(ServerState, WithoutEvalOrEvalshaItIsUnsupportedAndNothingWasExecuted) {
  for (const std::string renamed : {"EVAL", "EVALSHA"}) {
    RedisServer lame({"rename-command " + renamed + " \"\""});
    RawClient raw(lame.tcp());
    Client of_lame(lame.url_tcp());
    const Error error = error_of(of_lame.acquire(key, {.wait = forever}));
    EXPECT_EQ(error.code, Errc::unsupported) << error.detail;
    EXPECT_TRUE(contains(error.detail, renamed)) << error.detail;
    expect_for_people(error, key, "127.0.0.1:" + std::to_string(lame.port()));
    EXPECT_TRUE(raw.keys().empty());
  }
}

}  // namespace
}  // namespace redlease
