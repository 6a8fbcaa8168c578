// Promise 10: a lease key is a plain string key holding the token, so that every other SET NX PX lock excludes ours.
#include <thread>

#include "promise_support.hpp"
#include "support/monitor.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class Promise10APlainStringKey : public OverBothWays {
 protected:
  bool plain_lock(const std::string& name, const std::string& token, const std::string& px = "60000") {
    return truth.command({"SET", name, token, "NX", "PX", px}).text == "OK";
  }
  // Compare and delete, as everybody's unlock does.
  bool plain_unlock(const std::string& name, const std::string& token) {
    return truth
               .command({"EVAL",
                         "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end return 0",
                         "1", name, token})
               .integer == 1;
  }
};
INSTANTIATE_TEST_SUITE_P(Over, Promise10APlainStringKey, both_ways, name_of);

TEST_P(Promise10APlainStringKey, HoldsTheTokenAloneWithTheTtl) {
  const Lease lease = taken(client, key, limited(1s, 20s));
  EXPECT_EQ(truth.command({"TYPE", key}).text, "string");
  EXPECT_EQ(truth.get(key), lease.token().str());
  EXPECT_LE(truth.pttl(key), 20'000);
  EXPECT_GT(truth.pttl(key), 15'000);
  EXPECT_EQ(lease.token().str().size(), 49U);
  EXPECT_EQ(lease.token().str()[16], '.');
}

TEST_P(Promise10APlainStringKey, LeavesNothingButItsHelperBehind) {
  taken(client, key).release();
  EXPECT_EQ(truth.keys("*" + key + "*"), std::vector<std::string>{meta_of(key)});
}

TEST_P(Promise10APlainStringKey, HelperKeysShareItsSlotAndBeginWithIt) {
  for (const auto& [name, meta] : {std::pair(key + "plain", key + "plain:{" + key + "plain}lease:meta"),
                                   std::pair("{" + key + "}x", "{" + key + "}x:lease:meta"),
                                   std::pair(key + "{}", key + "{}:{" + key + "{}}lease:meta"),
                                   std::pair("a{" + key + "}{b}", "a{" + key + "}{b}:lease:meta")}) {
    taken(client, name).release();
    EXPECT_TRUE(truth.exists(meta)) << meta;
    EXPECT_TRUE(meta.starts_with(name));
  }
}

TEST_P(Promise10APlainStringKey, APlainLockExcludesOursUntilItIsGivenBack) {
  ASSERT_TRUE(plain_lock(key, "plain"));
  const Busy busy = busy_of(client.try_acquire(key));
  EXPECT_EQ(busy.holder, "") << "it is not one of ours";
  ASSERT_TRUE(busy.remaining);
  EXPECT_GT(*busy.remaining, 30s);
  EXPECT_TRUE(plain_unlock(key, "plain"));
  EXPECT_EQ(client.try_acquire(key).outcome(), AcquireOutcome::acquired);
}

TEST_P(Promise10APlainStringKey, OursExcludesAPlainLockAndItsUnlock) {
  Lease lease = taken(client, key);
  EXPECT_FALSE(plain_lock(key, "plain"));
  EXPECT_FALSE(plain_unlock(key, "plain"));
  EXPECT_EQ(lease.renew(), RenewOutcome::renewed);
  EXPECT_EQ(lease.release(), ReleaseOutcome::released);
  EXPECT_TRUE(plain_lock(key, "plain"));
}

TEST_P(Promise10APlainStringKey, ANeverExpiringKeyIsBusyWithoutATimeAndIsNeverStolen) {
  truth.set(key, "for ever");
  EXPECT_EQ(busy_of(client.try_acquire(key)).remaining, std::nullopt);
  const AcquireResult result = without_doubt([&] { return client.acquire(key, {.ttl = 300ms, .wait = 400ms}); });
  EXPECT_EQ(result.outcome(), AcquireOutcome::busy) << describe(result);
  EXPECT_EQ(truth.get(key), "for ever");
  EXPECT_EQ(truth.pttl(key), -1);
  const LeaseInfo info = client.inspect(key).value();
  EXPECT_TRUE(info.held);
  EXPECT_EQ(info.remaining, std::nullopt);
  EXPECT_EQ(info.holder, "");
}

TEST_P(Promise10APlainStringKey, AnEmptyValueIsSomebodysLockToo) {
  truth.command({"SET", key, "", "PX", "60000"});
  EXPECT_EQ(client.try_acquire(key).outcome(), AcquireOutcome::busy);
  EXPECT_EQ(truth.get(key), "");
}

TEST_P(Promise10APlainStringKey, AForeignHolderBehindOneOfOursIsNotShownAsOurs) {
  Lease ours = taken(client, key, {.label = "mine"});
  truth.command({"SET", key, "plain", "PX", "60000"});
  const LeaseInfo info = client.inspect(key).value();
  EXPECT_TRUE(info.held);
  EXPECT_EQ(info.holder, "");
  EXPECT_EQ(info.label, "");
  EXPECT_EQ(info.held_for, std::nullopt);
  EXPECT_EQ(busy_of(client.try_acquire(key)).holder, "");
  ours.abandon();
}

TEST_P(Promise10APlainStringKey, AnotherTypeOfKeyIsRefusedAtOnceAndLeftAsItWas) {
  const std::vector<std::vector<std::string>> makers{{"HSET", key, "f", "v"},
                                                     {"RPUSH", key, "v"},
                                                     {"SADD", key, "v"},
                                                     {"ZADD", key, "1", "v"},
                                                     {"XADD", key, "1-1", "f", "v"}};
  for (const auto& make : makers) {
    truth.command(make);
    const std::string dump = truth.command({"DUMP", key}).text;
    const Stopwatch watch;
    const Error error = error_of(client.acquire(key, {.wait = forever}));
    EXPECT_LE(watch.elapsed_ms(), 1s);
    EXPECT_EQ(error.code, Errc::not_a_lease) << make[0];
    expect_for_people(error, key, address_of(server).path.empty() ? "127.0.0.1" : address_of(server).path);
    EXPECT_EQ(client.inspect(key).error().code, Errc::not_a_lease);
    EXPECT_EQ(client.break_lease(key).error().code, Errc::not_a_lease);
    EXPECT_EQ(truth.command({"DUMP", key}).text, dump);
    EXPECT_EQ(truth.keys("*" + key + "*"), std::vector<std::string>{key}) << "something was left behind";
    truth.del(key);
  }
}

TEST_P(Promise10APlainStringKey, AHelperKeyOfTheWrongTypeDoesNotKeepAReleaseFromDeleting) {
  Lease lease = taken(client, key);
  truth.del(meta_of(key));
  truth.command({"RPUSH", meta_of(key), "v"});
  EXPECT_EQ(lease.renew(), RenewOutcome::renewed);
  EXPECT_EQ(lease.release(), ReleaseOutcome::released);
  EXPECT_FALSE(truth.exists(key));
  const Error error = error_of(client.try_acquire(key));
  EXPECT_EQ(error.code, Errc::not_a_lease);
  EXPECT_TRUE(contains(error.detail, "lease:meta")) << error.detail;
  EXPECT_FALSE(truth.exists(key));
}

TEST_P(Promise10APlainStringKey, BreakLeaseTakesAPlainLockButNoLongText) {
  ASSERT_TRUE(plain_lock(key, "plain"));
  EXPECT_TRUE(client.break_lease(key).value());
  EXPECT_FALSE(truth.exists(key));
  truth.set(key, std::string(257, 'x'));
  const auto refused = client.break_lease(key);
  EXPECT_EQ(refused.error().code, Errc::not_a_lease);
  EXPECT_TRUE(contains(refused.error().detail, "257")) << refused.error().detail;
  EXPECT_TRUE(truth.exists(key));
}

TEST_P(Promise10APlainStringKey, OneAtomicCommandAndDeclaredKeysOnly) {
  Monitor monitor(server.tcp());
  Lease lease = taken(client, key);
  lease.renew();
  (void)client.inspect(key);
  Lease adopted = client.adopt(key, lease.token());
  adopted.renew();
  adopted.abandon();
  lease.release();
  for (const auto& line : monitor.lines()) {
    if (!line.by_script()) continue;
    if (line.name() == "TIME") continue;
    ASSERT_GE(line.argv.size(), 2U) << line.line;
    EXPECT_TRUE(line.argv[1] == key || line.argv[1] == meta_of(key) || line.argv[1] == queue_of(key)) << line.line;
  }
}

TEST_P(Promise10APlainStringKey, EachCallIsOneRequest) {
  taken(client, key).renew();
  Monitor monitor(server.tcp());
  Lease lease = taken(client, key);
  lease.renew();
  lease.release();
  std::vector<std::string> names;
  for (const auto& line : monitor.lines()) {
    if (!line.by_script()) names.push_back(line.name());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"EVALSHA", "EVALSHA", "EVALSHA"}));
}

TEST_P(Promise10APlainStringKey, PlainLocksAndOursTakeTurns) {
  int inside = 0;
  int entries = 0;
  std::atomic<int> most{0};
  std::mutex guard_of_counters;
  const auto critical = [&] {
    {
      const std::lock_guard lock(guard_of_counters);
      ++entries;
      most = std::max(most.load(), ++inside);
    }
    std::this_thread::yield();
    const std::lock_guard lock(guard_of_counters);
    --inside;
  };
  std::thread plain([&] {
    RawClient raw(server.tcp());
    for (int i = 0; i < 100; ++i) {
      while (raw.command({"SET", key, "plain", "NX", "PX", "60000"}).text != "OK") std::this_thread::yield();
      critical();
      raw.command({"EVAL", "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end", "1", key,
                   "plain"});
    }
  });
  for (int i = 0; i < 100; ++i) {
    const LeaseGuard ours(client, key, {.ttl = 60s, .wait = 60s});
    critical();
  }
  plain.join();
  EXPECT_EQ(entries, 200);
  EXPECT_EQ(most, 1);
}

}  // namespace
}  // namespace redlease
