// What an observer sees, and that a prefix stands before every name.
#include <atomic>
#include <cmath>

#include "promise_support.hpp"
#include "support/fake_clock.hpp"
#include "support/monitor.hpp"

namespace redlease {
namespace {

using namespace testing_support;

struct Counts : Observer {
  std::atomic<int> acquisitions{0}, refusals{0}, doubts{0}, absences{0}, waiters{0}, waits{0}, renewals{0},
      failed_renewals{0}, losses{0}, releases{0}, failed_releases{0}, connections{0}, wrong{0};
  std::string server{"127.0.0.1"};

  void check(const Event& event, bool has_key = true) {
    const bool fine = event.elapsed >= 0ns && event.held >= 0ns && event.slack >= 0ns && event.key.empty() != has_key &&
                      contains(event.server, server);
    if (!fine) ++wrong;
  }
  void acquired(const Event& e) noexcept override { check(e), ++acquisitions; }
  void busy(const Event& e) noexcept override { check(e), ++refusals; }
  void unknown(const Event& e) noexcept override { check(e), doubts += e.error != nullptr; }
  void unavailable(const Event& e) noexcept override { check(e), absences += e.error != nullptr; }
  void waiting(const Event& e) noexcept override { check(e), ++waiters; }
  void waited(const Event& e) noexcept override { check(e), --waiters, waits += e.attempts > 0; }
  void renewed(const Event& e) noexcept override { check(e), ++renewals; }
  void renew_failed(const Event& e) noexcept override { check(e), failed_renewals += e.error != nullptr; }
  void lost(const Event& e) noexcept override { check(e), losses += e.loss.has_value(); }
  void released(const Event& e) noexcept override { check(e), ++releases; }
  void release_failed(const Event& e) noexcept override { check(e), ++failed_releases; }
  void connected(const Event& e) noexcept override { check(e, false), ++connections; }
};

class ScriptedRun : public ::testing::Test {
 protected:
  RedisServer& server{shared_server()};
  RawClient truth{server.tcp()};
  const std::string key{fresh_key() + "/"};  // with numbers behind it, it is no other key
  std::shared_ptr<Counts> seen{std::make_shared<Counts>()};
};

TEST_F(ScriptedRun, IsCountedExactly) {
  FaultProxy proxy(server.tcp());
  Client client(proxy.url(), {.observer = seen});
  std::vector<Lease> five;
  for (int i = 0; i < 5; ++i) five.push_back(taken(client, key + std::to_string(i)));
  for (int i = 0; i < 2; ++i) busy_of(client.try_acquire(key + "0"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(five[0].renew(), RenewOutcome::renewed);
  truth.del(key + "1");
  EXPECT_EQ(five[1].renew(), RenewOutcome::lost);
  five[2].release();
  truth.del(key + "3");
  five[3].release();
  EXPECT_EQ(seen->connections, 1);
  proxy.withhold_replies();
  { const Claim claim = claim_of(client.try_acquire(key + "5", limited(100ms))); }
  proxy.refuse();
  proxy.drop_all();
  EXPECT_NE(five[4].renew(), RenewOutcome::renewed);
  error_of(client.try_acquire(key + "6"));
  proxy.heal();
  proxy.refuse(false);
  busy_of(client.acquire(key + "4"));
  const int busy_before = seen->refusals;
  lease_of(client.acquire(key + "7", {.wait = 1s})).abandon();

  EXPECT_EQ(seen->acquisitions, 6);
  EXPECT_GE(busy_before, 3);
  EXPECT_EQ(seen->refusals, busy_before);
  EXPECT_EQ(seen->doubts, 1);
  EXPECT_EQ(seen->absences, 1);
  EXPECT_EQ(seen->renewals, 3);
  EXPECT_EQ(seen->failed_renewals, 1);
  EXPECT_EQ(seen->losses, 1);
  EXPECT_EQ(seen->releases, 1);
  EXPECT_EQ(seen->failed_releases, 1);
  EXPECT_EQ(seen->waits, 2);
  EXPECT_EQ(seen->waiters, 0);
  EXPECT_EQ(seen->wrong, 0);
}

TEST_F(ScriptedRun, ALossByTheDeadlineIsSeenToo) {
  FakeClock clock;
  Client client(server.url_tcp(), {.observer = seen, .clock = &clock});
  Lease lease = taken(client, key);
  clock.advance(60s);
  EXPECT_EQ(lease.release(), ReleaseOutcome::not_held);
  EXPECT_EQ(seen->losses, 1);
}

TEST_F(ScriptedRun, ALeaseIsCountedDownOnceHoweverItEnds) {
  FakeClock clock;
  const auto metrics = std::make_shared<Metrics>();
  Client client(server.url_tcp(), {.observer = metrics, .clock = &clock});
  Lease late = taken(client, key + "1"), handed = taken(client, key + "2"), stale = taken(client, key + "3");
  const Lease kept = taken(client, key + "4", {.ttl = 1h});
  handed.abandon();
  EXPECT_EQ(metrics->snapshot().held, 3U);
  clock.advance(60s);
  EXPECT_EQ(late.release(), ReleaseOutcome::not_held);
  EXPECT_EQ(metrics->snapshot().released, 1U) << "the server still had it";
  stale.abandon();
  EXPECT_EQ(metrics->snapshot().held, 1U);
  EXPECT_EQ(metrics->snapshot().lost_by_deadline, 2U);
}

TEST_F(ScriptedRun, APrefixStandsBeforeEveryNameThatIsSent) {
  Client client(server.url_tcp(), {.key_prefix = "prod:"});
  Monitor monitor(server.tcp());
  Lease lease = taken(client, key);
  EXPECT_EQ(lease.key().str(), key) << "the prefix is not part of the name";
  EXPECT_EQ(truth.get("prod:" + key), lease.token().str());
  lease.renew();
  busy_of(client.acquire(key));
  (void)client.inspect(key);
  Lease adopted = client.adopt(key, lease.token());
  adopted.renew();
  adopted.abandon();
  (void)fenced_set(client, key + "-resource", "v", FencingToken{1});
  EXPECT_EQ(lease.release(), ReleaseOutcome::released);
  EXPECT_FALSE(truth.exists("prod:" + key));
  taken(client, key).abandon();
  EXPECT_TRUE(client.break_lease(key).value());
  int checked = 0;
  for (const auto& line : monitor.lines()) {
    if (line.argv.size() < 2 || line.name() == "CLIENT") continue;
    if (line.client != "lua" && !line.name().starts_with("EVAL")) continue;  // the test's own
    if (line.name() == "TIME") continue;
    const std::size_t first = line.by_script() ? 1 : 3;
    const std::size_t keys = line.by_script() ? 1 : std::stoul(line.argv.at(2));
    for (std::size_t i = 0; i < keys; ++i, ++checked) {
      EXPECT_TRUE(line.argv.at(first + i).starts_with("prod:" + key)) << line.line;
    }
  }
  EXPECT_GT(checked, 30);
}

TEST_F(ScriptedRun, PrefixesAndNamesThatLookAlikeTogetherAreOneKeyAndOthersAreNot) {
  Client one(server.url_tcp(), {.key_prefix = "prod:"});
  Client two(server.url_tcp(), {.key_prefix = "prod2:"});
  Client none(server.url_tcp());
  const Lease first = taken(one, key);
  const Lease second = taken(two, key);
  const Lease third = taken(none, key);
  EXPECT_EQ(none.try_acquire("prod:" + key).outcome(), AcquireOutcome::busy)
      << "the key on the server is prefix + name";
}

TEST_F(ScriptedRun, NoEventTellsAPassword) {
  struct Details : Observer {
    std::string all;
    void note(const Event& e) {
      all += std::string(e.key) + std::string(e.server);
      if (e.error != nullptr) all += e.error->detail;
    }
    void unavailable(const Event& e) noexcept override { note(e); }
    void connected(const Event& e) noexcept override { note(e); }
  };
  const auto details = std::make_shared<Details>();
  Client client("redis://me:" + secret + "@127.0.0.1:" + std::to_string(server.port()), {.observer = details});
  expect_for_people(error_of(client.try_acquire(key)), key, "127.0.0.1");
  EXPECT_FALSE(contains(details->all, secret)) << details->all;
  EXPECT_TRUE(contains(details->all, "127.0.0.1"));
}

}  // namespace
}  // namespace redlease
