// Promise 2: four outcomes, never merged.
#include "promise_support.hpp"
#include "support/scripted_server.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class Promise2FourOutcomesNeverMerged : public OverBothWays {};
INSTANTIATE_TEST_SUITE_P(Over, Promise2FourOutcomesNeverMerged, both_ways, name_of);

TEST_P(Promise2FourOutcomesNeverMerged, AFreeKeyIsAcquired) {
  AcquireResult result = client.try_acquire(key);
  ASSERT_EQ(result.outcome(), AcquireOutcome::acquired) << describe(result);
  EXPECT_EQ(result.busy(), nullptr);
  EXPECT_EQ(result.unavailable(), nullptr);
  const Lease lease = lease_of(std::move(result));
  EXPECT_TRUE(lease.held());
  EXPECT_EQ(truth.get(key), lease.token().str());
}

TEST_P(Promise2FourOutcomesNeverMerged, AHeldKeyIsBusyAndTellsByWhomAndHowLong) {
  const Lease lease = taken(client, key, {.ttl = 30s, .label = "nightly run"});
  Client other(url);
  const Busy busy = busy_of(other.try_acquire(key));
  ASSERT_TRUE(busy.remaining);
  EXPECT_LE(*busy.remaining, 30s);
  EXPECT_GT(*busy.remaining, 15s);
  EXPECT_TRUE(busy.holder.ends_with(":" + std::to_string(::getpid()) + " nightly run")) << busy.holder;
}

TEST_P(Promise2FourOutcomesNeverMerged, ARequestWithoutAReplyIsUnknownWhateverTheServerDid) {
  FaultProxy proxy(address_of(server), front());
  Client cut_off(proxy.url());
  for (const bool executed : {true, false}) {
    const std::string name = key + (executed ? "yes" : "no");
    ASSERT_TRUE(reachable(cut_off));
    executed ? proxy.withhold_replies() : proxy.withhold_requests();
    Claim claim = claim_of(cut_off.try_acquire(name, limited(300ms)));
    EXPECT_EQ(truth.get(name), executed ? std::optional(claim.token().str()) : std::nullopt);
    EXPECT_EQ(claim.error().code, Errc::unknown_outcome);
    expect_for_people(claim.error(), name, proxy.address().path.empty() ? "127.0.0.1" : proxy.address().path);
    proxy.heal();
  }
}

TEST_P(Promise2FourOutcomesNeverMerged, ARefusalIsUnavailableAndNothingIsOnTheServer) {
  truth.command({"LPUSH", key, "no lease"});
  const Error error = error_of(client.try_acquire(key));
  EXPECT_EQ(error.code, Errc::not_a_lease);
  expect_for_people(error, key, address_of(server).path.empty() ? "127.0.0.1" : address_of(server).path);
  EXPECT_FALSE(truth.exists(meta_of(key)));
}

TEST_P(Promise2FourOutcomesNeverMerged, NobodyThereIsUnavailable) {
  FaultProxy proxy(address_of(server), front());
  proxy.refuse();
  Client nobody(proxy.url());
  const Error error = error_of(nobody.try_acquire(key));
  EXPECT_EQ(error.code, Errc::connect_failed);
  expect_for_people(error, key, proxy.address().path.empty() ? "127.0.0.1" : proxy.address().path);
  EXPECT_TRUE(contains(error.detail, "nothing was sent")) << error.detail;
}

TEST_P(Promise2FourOutcomesNeverMerged, AGuardNeverRunsItsScopeWithoutTheLease) {
  const Lease lease = taken(client, key);
  Client other(url);
  bool ran = false;
  try {
    LeaseGuard guard(other, key);
    ran = true;
  } catch (const AcquireError& error) {
    EXPECT_EQ(error.outcome(), AcquireOutcome::busy);
    EXPECT_EQ(error.code(), Errc::busy);
    EXPECT_TRUE(contains(error.what(), key)) << error.what();
    EXPECT_TRUE(contains(error.what(), ":" + std::to_string(::getpid()))) << error.what();
  }
  EXPECT_FALSE(ran);
}

TEST_P(Promise2FourOutcomesNeverMerged, AGuardTellsUnknownAndUnavailableApartAndWithdraws) {
  FaultProxy proxy(address_of(server), front());
  Client cut_off(proxy.url());
  ASSERT_TRUE(reachable(cut_off));
  proxy.withhold_replies();
  try {
    LeaseGuard guard(cut_off, key, limited(300ms));
    FAIL() << "a lease without an answer";
  } catch (const AcquireError& error) {
    EXPECT_EQ(error.outcome(), AcquireOutcome::unknown);
    EXPECT_EQ(error.code(), Errc::unknown_outcome);
  }
  EXPECT_TRUE(eventually([&] { return !truth.exists(key); })) << "the claim was not withdrawn";
  proxy.drop_all();
  proxy.refuse();
  try {
    LeaseGuard guard(cut_off, key, std::try_to_lock, limited(300ms));
    FAIL() << "a lease without a server";
  } catch (const AcquireError& error) {
    EXPECT_EQ(error.outcome(), AcquireOutcome::unavailable);
    EXPECT_EQ(error.code(), Errc::connect_failed);
  }
}

TEST_P(Promise2FourOutcomesNeverMerged, ABareErrorFromWithinAScriptIsUnknown) {
  // It does run scripts, so that this may come from the middle of one.
  ScriptedServer odd([](const ScriptedServer::Command& command) -> std::string {
    if (command[0] == "TIME") return "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n";
    if (command[0] == "EVALSHA" && command[1] == std::string(40, '0')) return "-NOSCRIPT none\r\n";
    if (command[0] == "EVALSHA") return "-ERR something broke\r\n";
    if (command[0] == "EVAL" && command[1] == "return 1") return ":1\r\n";
    if (command[0] == "EVAL") return ":0\r\n";
    return "+OK\r\n";
  });
  Client asked(odd.url());
  Claim claim = claim_of(asked.try_acquire(key));
  EXPECT_TRUE(contains(claim.error().detail, "ERR something broke")) << claim.error().detail;
}

}  // namespace
}  // namespace redlease
