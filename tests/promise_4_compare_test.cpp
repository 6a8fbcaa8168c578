// Promise 4: release and renew compare the token in the server; nothing is resurrected, nothing shortened.
#include <random>
#include <thread>

#include "promise_support.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class Promise4ReleaseAndRenewCompareTheToken : public OverBothWays {};
INSTANTIATE_TEST_SUITE_P(Over, Promise4ReleaseAndRenewCompareTheToken, both_ways, name_of);

TEST_P(Promise4ReleaseAndRenewCompareTheToken, AnExpiredHolderLeavesTheNextOneAlone) {
  Lease late = taken(client, key, limited(100ms, 300ms));
  std::this_thread::sleep_for(310ms);
  const Lease current = lease_of(client.acquire(key, {.ttl = 30s, .wait = 5s}));
  EXPECT_EQ(late.release(), ReleaseOutcome::not_held);
  EXPECT_EQ(late.loss(), LossCause::deadline);
  EXPECT_EQ(truth.get(key), current.token().str());
  EXPECT_TRUE(current.held());
}

TEST_P(Promise4ReleaseAndRenewCompareTheToken, ADestructorLeavesTheNextOneAlone) {
  {
    const Lease robbed = taken(client, key);
    truth.command({"SET", key, "another", "PX", "60000"});
  }
  EXPECT_EQ(truth.get(key), "another");
}

TEST_P(Promise4ReleaseAndRenewCompareTheToken, ARenewalTellsGoneFromTaken) {
  Lease gone = taken(client, key);
  truth.del(key);
  EXPECT_EQ(gone.renew(), RenewOutcome::lost);
  EXPECT_EQ(gone.loss(), LossCause::gone);
  EXPECT_FALSE(gone.held());
  EXPECT_FALSE(truth.exists(key)) << "resurrected";
  EXPECT_EQ(gone.last_error().code, Errc::lost);
  expect_for_people(gone.last_error(), key, "");

  Lease robbed = taken(client, key);
  truth.command({"SET", key, "another", "PX", "60000"});
  EXPECT_EQ(robbed.renew(), RenewOutcome::lost);
  EXPECT_EQ(robbed.loss(), LossCause::taken);
  EXPECT_FALSE(robbed.held());
  EXPECT_EQ(truth.get(key), "another");
  EXPECT_LE(truth.pttl(key), 60'000);
  EXPECT_EQ(robbed.renew(), RenewOutcome::lost) << "lost once, lost for good";
  EXPECT_EQ(robbed.loss(), LossCause::taken);
}

TEST_P(Promise4ReleaseAndRenewCompareTheToken, AReleaseTellsGoneFromTaken) {
  Lease gone = taken(client, key);
  truth.del(key);
  EXPECT_EQ(gone.release(), ReleaseOutcome::not_held);
  EXPECT_EQ(gone.loss(), LossCause::gone);
  Lease robbed = taken(client, key);
  truth.command({"SET", key, "another", "PX", "60000"});
  EXPECT_EQ(robbed.release(), ReleaseOutcome::not_held);
  EXPECT_EQ(robbed.loss(), LossCause::taken);
  EXPECT_EQ(truth.get(key), "another");
}

TEST_P(Promise4ReleaseAndRenewCompareTheToken, AnotherTypeOfKeyCountsAsTaken) {
  for (const bool by_renewal : {true, false}) {
    Lease lease = taken(client, key);
    truth.del(key);
    truth.command({"HSET", key, "field", "value"});
    if (by_renewal) {
      EXPECT_EQ(lease.renew(), RenewOutcome::lost);
    } else {
      EXPECT_EQ(lease.release(), ReleaseOutcome::not_held);
    }
    EXPECT_EQ(lease.loss(), LossCause::taken);
    EXPECT_FALSE(lease.held());
    EXPECT_EQ(truth.command({"HGET", key, "field"}).text, "value");
    truth.del(key);
  }
}

TEST_P(Promise4ReleaseAndRenewCompareTheToken, TwoHandlesOfOneThreadAreTwoOwners) {
  Lease first = taken(client, key, limited(100ms, 300ms));
  std::this_thread::sleep_for(310ms);
  const Lease second = lease_of(client.acquire(key, {.ttl = 30s, .wait = 5s}));
  EXPECT_EQ(first.renew(), RenewOutcome::lost);
  EXPECT_EQ(first.release(), ReleaseOutcome::not_held);
  EXPECT_TRUE(second.held());
  EXPECT_EQ(truth.get(key), second.token().str());
}

TEST_P(Promise4ReleaseAndRenewCompareTheToken, RenewalsAreNotAddedUp) {
  Lease lease = taken(client, key, limited(500ms, 2s));
  for (int i = 0; i < 50; ++i) ASSERT_EQ(lease.renew(), RenewOutcome::renewed) << lease.last_error().detail;
  EXPECT_LE(truth.pttl(key), 2'000);
  EXPECT_LE(lease.remaining(), 2s);
  EXPECT_TRUE(lease.held());
}

TEST_P(Promise4ReleaseAndRenewCompareTheToken, NoRenewalShortensWhatTheServerHolds) {
  Lease lease = taken(client, key, limited(500ms, 10s));
  truth.command({"PEXPIRE", key, "60000"});
  ASSERT_EQ(lease.renew(), RenewOutcome::renewed);
  EXPECT_GT(truth.pttl(key), 30'000);
  EXPECT_LE(lease.remaining(), 10s);
}

TEST_P(Promise4ReleaseAndRenewCompareTheToken, AKeyThatSomebodyMadePersistGetsItsExpiryBack) {
  Lease lease = taken(client, key, limited(500ms, 10s));
  truth.command({"PERSIST", key});
  ASSERT_EQ(truth.pttl(key), -1);
  ASSERT_EQ(lease.renew(), RenewOutcome::renewed);
  EXPECT_GT(truth.pttl(key), 0);
  EXPECT_LE(truth.pttl(key), 10'000);
}

TEST_P(Promise4ReleaseAndRenewCompareTheToken, AnExpiryThatTheServersClockBroughtForwardIsALoss) {
  Lease lease = taken(client, key);
  truth.command({"PEXPIREAT", key, "1"});
  EXPECT_EQ(lease.renew(), RenewOutcome::lost);
  EXPECT_EQ(lease.loss(), LossCause::gone);
}

TEST_P(Promise4ReleaseAndRenewCompareTheToken, ScriptsMayBeFlushedBetweenAnyTwoCalls) {
  const auto flush = [&] { truth.command({"SCRIPT", "FLUSH"}); };
  for (int i = 0; i < 5; ++i) {
    flush();
    Lease lease = taken(client, key);
    flush();
    EXPECT_EQ(client.try_acquire(key).outcome(), AcquireOutcome::busy);
    flush();
    EXPECT_EQ(lease.renew(), RenewOutcome::renewed) << lease.last_error().detail;
    flush();
    EXPECT_TRUE(client.inspect(key).value().held);
    flush();
    Lease adopted = client.adopt(key, lease.token());
    EXPECT_EQ(adopted.renew(), RenewOutcome::renewed);
    EXPECT_EQ(adopted.fencing_token(), lease.fencing_token());
    flush();
    EXPECT_EQ(lease.release(), ReleaseOutcome::released) << lease.last_error().detail;
    flush();
    EXPECT_EQ(adopted.release(), ReleaseOutcome::not_held);
    flush();
    EXPECT_FALSE(client.break_lease(key).value());
    flush();
    EXPECT_TRUE(fenced_set(client, key + "-resource", "v", FencingToken{1}).value().accepted);
  }
}

TEST_P(Promise4ReleaseAndRenewCompareTheToken, TheServerKeepsExactlyTheTtlAskedFor) {
  std::mt19937 random(4);
  std::uniform_int_distribution<int> millis(1'000, 86'400'000);
  for (int i = 0; i < 30; ++i) {
    const Millis ttl(millis(random));
    Lease lease = taken(client, key, {.ttl = ttl});
    const auto left = truth.pttl(key);
    EXPECT_LE(left, ttl.count());
    EXPECT_GT(left, ttl.count() - 900);
    EXPECT_EQ(lease.release(), ReleaseOutcome::released);
  }
}

TEST_P(Promise4ReleaseAndRenewCompareTheToken, NothingOfOursEverStandsWithoutAnExpiry) {
  std::mt19937 random(5);
  std::vector<Lease> leases;
  const std::vector<std::string> names{key + "a", key + "b", "{" + key + "}c"};
  for (int i = 0; i < 150; ++i) {
    const std::string& name = names[random() % names.size()];
    switch (random() % 5) {
      case 0:
      case 1:
        if (auto lease = client.try_acquire(name, limited(10ms, Millis(30 + random() % 50))).lease()) {
          leases.push_back(*std::move(lease));
        }
        break;
      case 2:
        if (!leases.empty()) (void)leases[random() % leases.size()].renew();
        break;
      case 3:
        if (!leases.empty()) leases.erase(leases.begin());
        break;
      default: (void)client.break_lease(name);
    }
    for (const std::string& found : truth.keys("*" + key + "*")) {
      EXPECT_NE(truth.pttl(found), -1) << found;
    }
  }
}

}  // namespace
}  // namespace redlease
