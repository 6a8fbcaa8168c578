// Passwords and ACLs: what is needed, how a refusal reads, and that nothing else is ever sent.
#include <atomic>
#include <future>
#include <thread>

#include "promise_support.hpp"
#include "support/monitor.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class Acl : public ::testing::Test {
 protected:
  // What the documentation of the errors says a user needs.
  const std::vector<std::string> documented{"&redlease:inbox:*",
                                            "+eval",
                                            "+evalsha",
                                            "+get",
                                            "+set",
                                            "+del",
                                            "+pttl",
                                            "+pexpire",
                                            "+time",
                                            "+zadd",
                                            "+zcard",
                                            "+zpopmin",
                                            "+zrange",
                                            "+zrank",
                                            "+zrem",
                                            "+zscore",
                                            "+hget",
                                            "+hset",
                                            "+hdel",
                                            "+publish",
                                            "+subscribe",
                                            "+pubsub",
                                            "+ping"};
  // The queue is out of sight for those who have no more than this; they take leases and give them back all the same.
  const std::vector<std::string> no_queue{"+eval", "+evalsha", "+get", "+set", "+del", "+pttl", "+pexpire", "+time"};

  std::string url_as(const std::string& user, const std::string& password) const {
    return "redis://" + user + ":" + password + "@127.0.0.1:" + std::to_string(server.port());
  }
  void make_user(const std::vector<std::string>& rules, const std::string& keys = "~*") {
    std::vector<std::string> command{"ACL", "SETUSER", "limited", "reset", "on", ">" + secret, keys};
    command.insert(command.end(), rules.begin(), rules.end());
    ASSERT_EQ(truth.command(command).text, "OK");
  }
  std::vector<std::string> all_but(const std::string& rule) const {
    std::vector<std::string> rules;
    for (const auto& each : documented) {
      if (each != rule) rules.push_back(each);
    }
    return rules;
  }
  void expect_denied(const Error& error, const std::string& what) {
    EXPECT_EQ(error.code, Errc::denied) << error.detail;
    EXPECT_TRUE(contains(error.detail, what)) << "\"" << what << "\" is not in: " << error.detail;
    expect_for_people(error, key, "127.0.0.1:" + std::to_string(server.port()));
  }

  RedisServer& server{shared_server()};
  RawClient truth{server.tcp()};
  const std::string key{fresh_key()};
  const std::string as_limited{url_as("limited", secret)};
  Client client{server.url_tcp()};
};

TEST_F(Acl, ExactlyTheDocumentedRulesAreEnoughAndTheAclLogStaysEmpty) {
  make_user(documented, "~app:*");
  truth.command({"ACL", "LOG", "RESET"});
  Client limited(as_limited, {.name = "", .key_prefix = "app:"});
  Lease lease = taken(limited, key);
  EXPECT_EQ(limited.try_acquire(key).outcome(), AcquireOutcome::busy);
  EXPECT_EQ(lease.renew(), RenewOutcome::renewed);
  EXPECT_TRUE(limited.inspect(key).value().held);
  Lease adopted = limited.adopt(key, lease.token());
  EXPECT_EQ(adopted.renew(), RenewOutcome::renewed);
  adopted.abandon();
  EXPECT_EQ(lease.release(), ReleaseOutcome::released) << lease.last_error().detail;
  EXPECT_FALSE(limited.break_lease(key).value());
  const RawReply log = truth.command({"ACL", "LOG"});
  EXPECT_TRUE(log.elements.empty()) << to_string(log);
}

TEST_F(Acl, WithTheDocumentedRulesWaitersAreWokenAndTheAclLogStaysEmpty) {
  make_user(documented, "~app:*");
  truth.command({"ACL", "LOG", "RESET"});
  Client limited(as_limited, {.name = "", .key_prefix = "app:"});
  Lease first = taken(limited, key);
  auto waiter = std::async(std::launch::async, [&] { return limited.acquire(key, {.ttl = 60s, .wait = 30s}); });
  while (limited.inspect(key).value().waiters == 0) std::this_thread::sleep_for(1ms);
  const Deadline released = LeaseClock::now();
  EXPECT_EQ(first.release(), ReleaseOutcome::released);
  Lease second = lease_of(waiter.get());
  EXPECT_LT(LeaseClock::now() - released, 1s) << "it was not woken, but asked";
  EXPECT_EQ(second.release(), ReleaseOutcome::released);
  const RawReply log = truth.command({"ACL", "LOG"});
  EXPECT_TRUE(log.elements.empty()) << to_string(log);
}

TEST_F(Acl, WithoutTheQueuesCommandsLeasesAreTakenKeptWaitedForAndGivenBack) {
  make_user(no_queue);
  struct Told final : Observer {
    std::atomic<int> times{0};
    std::string why;
    void unheard(const Event& event) noexcept override {
      if (times++ == 0) why = event.error->detail;
    }
  };
  const auto told = std::make_shared<Told>();
  Client limited(as_limited, {.observer = told});
  for (int i = 0; i < 2; ++i) {
    Lease first = taken(limited, key);
    auto waiter = std::async(std::launch::async, [&] { return limited.acquire(key, {.wait = 30s}); });
    std::this_thread::sleep_for(100ms);
    EXPECT_EQ(limited.inspect(key).value().waiters, 0U);
    EXPECT_EQ(first.release(), ReleaseOutcome::released);
    EXPECT_EQ(lease_of(waiter.get()).release(), ReleaseOutcome::released);
  }
  EXPECT_EQ(told->times, 1);
  EXPECT_TRUE(contains(told->why, "SUBSCRIBE") || contains(told->why, "ZADD")) << told->why;
}

TEST_F(Acl, WithoutClientTheNameIsNotSetAndAllElseWorks) {
  make_user(documented);
  Client limited(as_limited);
  EXPECT_EQ(taken(limited, key).release(), ReleaseOutcome::released);
}

TEST_F(Acl, FencedSetAndPingNeedTheirOwn) {
  make_user({"+eval", "+evalsha", "+hget", "+hset", "+exists", "+ping"});
  Client limited(as_limited);
  EXPECT_TRUE(fenced_set(limited, key, "v", FencingToken{1}).value().accepted);
  EXPECT_TRUE(limited.ping().has_value());
  make_user(no_queue);
  const auto refused = fenced_set(limited, key, "w", FencingToken{2});
  ASSERT_FALSE(refused.has_value());
  expect_denied(refused.error(), "HGET");
  EXPECT_EQ(truth.command({"HGET", key, "value"}).text, "v");
  const auto ping = limited.ping();
  ASSERT_FALSE(ping.has_value());
  EXPECT_EQ(ping.error().code, Errc::denied);
  EXPECT_TRUE(contains(ping.error().detail, "+ping")) << ping.error().detail;
}

TEST_F(Acl, ACommandRefusedInsideAnAcquireIsNamedAndNothingIsGranted) {
  for (const std::string command : {"get", "set", "time"}) {
    make_user(all_but("+" + command));
    Client limited(as_limited);
    std::string capitals = command;
    for (char& c : capitals) c = static_cast<char>(c - 'a' + 'A');
    const Error error = error_of(limited.acquire(key, {.wait = forever}));
    expect_denied(error, capitals);
    EXPECT_TRUE(contains(error.detail, "+" + command)) << "the rule is not in: " << error.detail;
    EXPECT_TRUE(truth.keys("*" + key + "*").empty());
  }
}

TEST_F(Acl, ACommandRefusedInsideABusyAnswerIsNamed) {
  truth.command({"SET", key, "another", "PX", "60000"});
  make_user(all_but("+pttl"));
  Client limited(as_limited);
  expect_denied(error_of(limited.try_acquire(key)), "PTTL");
  EXPECT_EQ(truth.get(key), "another");
}

TEST_F(Acl, ACommandRefusedInsideARenewalIsNamedAndTheLeaseIsAsItWas) {
  for (const std::string command : {"get", "pttl", "pexpire"}) {
    make_user(documented);
    Client limited(as_limited);
    Lease lease = taken(limited, key);
    truth.command({"PEXPIRE", key, "20000"});
    const Deadline before = lease.deadline();
    make_user(all_but("+" + command));
    EXPECT_EQ(lease.renew(), RenewOutcome::unavailable);
    std::string capitals = command;
    for (char& c : capitals) c = static_cast<char>(c - 'a' + 'A');
    expect_denied(lease.last_error(), capitals);
    EXPECT_TRUE(lease.held());
    EXPECT_EQ(lease.deadline(), before);
    EXPECT_LE(truth.pttl(key), 20'000);
    make_user(documented);
    EXPECT_EQ(lease.renew(), RenewOutcome::renewed);
    EXPECT_EQ(lease.release(), ReleaseOutcome::released);
  }
}

TEST_F(Acl, ACommandRefusedInsideAReleaseIsNamedAndTheKeyStays) {
  for (const std::string command : {"get", "del"}) {
    make_user(documented);
    Client limited(as_limited);
    Lease lease = taken(limited, key);
    make_user(all_but("+" + command));
    EXPECT_EQ(lease.release(), ReleaseOutcome::unavailable);
    std::string capitals = command;
    for (char& c : capitals) c = static_cast<char>(c - 'a' + 'A');
    expect_denied(lease.last_error(), capitals);
    EXPECT_EQ(truth.get(key), lease.token().str());
    truth.del(key);
  }
}

TEST_F(Acl, WithoutEvalOrEvalshaItIsDenied) {
  for (const std::string rule : {"+eval", "+evalsha"}) {
    truth.command({"SCRIPT", "FLUSH"});
    make_user(all_but(rule));
    Client limited(as_limited);
    const Error error = error_of(limited.acquire(key, {.wait = forever}));
    expect_denied(error, "NOPERM");
    EXPECT_TRUE(contains(error.detail, rule)) << error.detail;
    EXPECT_FALSE(truth.exists(key));
  }
}

TEST_F(Acl, AKeyOutsideTheUsersPatternIsDenied) {
  make_user(documented, "~app:*");
  Client limited(as_limited);
  expect_denied(error_of(limited.try_acquire(key)), "NOPERM");
  EXPECT_FALSE(truth.exists(key));
}

TEST_F(Acl, AWrongPasswordAndAnUnknownUserAreDenied) {
  make_user(documented);
  for (const std::string& url : {url_as("limited", secret + "x"), url_as("nobody", secret), url_as("limited", "")}) {
    Client wrong(url);
    expect_denied(error_of(wrong.acquire(key, {.wait = forever})), "WRONGPASS");
    EXPECT_EQ(wrong.ping().error().code, Errc::denied);
    EXPECT_FALSE(contains(wrong.ping().error().detail, secret));
  }
}

TEST_F(Acl, AServerThatWantsAPasswordIsDeniedWithoutOne) {
  RedisServer locked({"requirepass " + secret});
  const std::string port = std::to_string(locked.port());
  Client without(locked.url_tcp());
  const Error error = error_of(without.acquire(key, {.wait = forever}));
  EXPECT_EQ(error.code, Errc::denied);
  EXPECT_TRUE(contains(error.detail, "NOAUTH")) << error.detail;
  EXPECT_TRUE(contains(error.detail, "password")) << error.detail;
  expect_for_people(error, key, "127.0.0.1:" + port);
  Client with("redis://:" + secret + "@127.0.0.1:" + port + "/3");
  Lease lease = taken(with, key);
  RawClient raw(locked.tcp());
  raw.auth(secret);
  EXPECT_FALSE(raw.exists(key));
  raw.command({"SELECT", "3"});
  EXPECT_EQ(raw.get(key), lease.token().str());
  // Every reconnect introduces itself again.
  raw.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  EXPECT_EQ(lease.renew(), RenewOutcome::renewed) << lease.last_error().detail;
  EXPECT_EQ(lease.release(), ReleaseOutcome::released);
  Client nowhere("redis://:" + secret + "@127.0.0.1:" + port + "/99");
  const Error no_db = error_of(nowhere.acquire(key, {.wait = forever}));
  EXPECT_EQ(no_db.code, Errc::unsupported) << no_db.detail;
  expect_for_people(no_db, key, "127.0.0.1:" + port);
}

TEST_F(Acl, APasswordThatChangedIsAClearErrorOnceTheConnectionIsGone) {
  make_user(documented);
  Client limited(as_limited);
  Lease lease = taken(limited, key);
  truth.command({"ACL", "SETUSER", "limited", "resetpass", ">other"});
  truth.command({"CLIENT", "KILL", "USER", "limited"});
  EXPECT_EQ(lease.renew(), RenewOutcome::unavailable);
  expect_denied(lease.last_error(), "WRONGPASS");
  EXPECT_TRUE(lease.held());
}

TEST_F(Acl, NothingIsEverSentThatALimitedUserOrAManagedServerRefuses) {
  Monitor monitor(server.tcp());
  {
    Client named(server.url_tcp(), {.name = "worker-7"});
    Lease lease = taken(named, key);
    lease.renew();
    (void)named.inspect(key);
    (void)named.ping();
    busy_of(named.acquire(key));
    lease.release();
    (void)named.break_lease(key);
  }
  for (const auto& line : monitor.lines()) {
    if (line.by_script()) continue;
    EXPECT_TRUE(line.name() == "EVALSHA" || line.name() == "EVAL" || line.name() == "TIME" || line.name() == "PING" ||
                (line.name() == "CLIENT" && line.argv[1] == "SETNAME" && line.argv[2] == "worker-7"))
        << line.line;
  }
}

}  // namespace
}  // namespace redlease
