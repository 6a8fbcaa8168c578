// Promise 3: a token is one acquisition, and spent once withdrawn.
#include <set>
#include <vector>

#include "promise_support.hpp"
#include "support/monitor.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class Promise3ATokenIsOneAcquisition : public OverBothWays {
 protected:
  // EVALSHA or EVAL with these keys and a token behind them: 2 keys is an acquire, 1 a release (or a renewal).
  static std::vector<std::string> tokens_of(const std::vector<MonitorLine>& lines, const std::string& keys) {
    std::vector<std::string> tokens;
    for (const auto& line : lines) {
      if (line.by_script() || line.argv.size() < 5 || !line.name().starts_with("EVAL") || line.argv[2] != keys)
        continue;
      tokens.push_back(line.argv[3 + std::stoul(keys)]);
    }
    return tokens;
  }
};
INSTANTIATE_TEST_SUITE_P(Over, Promise3ATokenIsOneAcquisition, both_ways, name_of);

TEST_P(Promise3ATokenIsOneAcquisition, EachAcquireHasAFreshOne) {
  std::set<std::string> tokens;
  for (int i = 0; i < 50; ++i) {
    Lease lease = taken(client, key);
    EXPECT_EQ(truth.get(key), lease.token().str());
    EXPECT_TRUE(tokens.insert(lease.token().str()).second);
    lease.release();
  }
}

TEST_P(Promise3ATokenIsOneAcquisition, ABusyAnswerSpendsTheTokenToo) {
  truth.command({"SET", key, "another", "PX", "60000"});
  Monitor monitor(server.tcp());
  for (int i = 0; i < 5; ++i) busy_of(client.try_acquire(key));
  const auto tokens = tokens_of(monitor.lines(), "2");
  EXPECT_EQ(std::set<std::string>(tokens.begin(), tokens.end()).size(), tokens.size());
}

TEST_P(Promise3ATokenIsOneAcquisition, ARetryBehindTheDoubtfulCommandFindsItsOwnWithTheSameFence) {
  FaultProxy proxy(address_of(server), front());
  Client doubtful(proxy.url());
  Claim claim = unanswered(doubtful, proxy, key);
  const std::string token = claim.token().str();
  ASSERT_EQ(truth.get(key), token);
  const std::string fence_on_server = truth.get(meta_of(key)).value();
  proxy.heal();
  Lease lease = lease_of(std::move(claim).retry(deadline_in(5s)));
  EXPECT_EQ(lease.token().str(), token);
  EXPECT_EQ(fence_on_server.substr(0, fence_on_server.find(' ')), std::to_string(fence_of(lease)));
  EXPECT_EQ(truth.get(meta_of(key)), fence_on_server) << "the retry made another fence";
  EXPECT_EQ(proxy.connections(), 1U) << "it went elsewhere";
  EXPECT_EQ(lease.release(), ReleaseOutcome::released);
}

TEST_P(Promise3ATokenIsOneAcquisition, ARetryKeepsItsDoubtWhileNoAnswerComes) {
  FaultProxy proxy(address_of(server), front());
  Client doubtful(proxy.url());
  ASSERT_TRUE(reachable(doubtful));
  proxy.withhold_replies();
  Claim claim = claim_of(doubtful.try_acquire(key, limited(150ms)));
  const OwnerToken token = claim.token();
  for (int i = 0; i < 3; ++i) {
    claim = claim_of(std::move(claim).retry(deadline_in(100ms)));
    EXPECT_EQ(claim.token(), token);
    EXPECT_EQ(truth.get(key), token.str()) << "a claim that lives withdraws nothing";
  }
  proxy.heal();
  EXPECT_EQ(lease_of(std::move(claim).retry(deadline_in(5s))).token(), token);
}

TEST_P(Promise3ATokenIsOneAcquisition, ARetryWithoutItsConnectionWithdrawsTheTokenAndTriesAFreshOne) {
  FaultProxy proxy(address_of(server), front());
  Client doubtful(proxy.url());
  Claim claim = unanswered(doubtful, proxy, key);
  const std::string token = claim.token().str();
  ASSERT_EQ(truth.get(key), token);
  Monitor monitor(server.tcp());
  proxy.drop_all();
  proxy.heal();
  // The first retry may be what finds the connection dead; a doubt that stays is tried again.
  AcquireResult result = std::move(claim).retry(deadline_in(5s));
  while (result.outcome() == AcquireOutcome::unknown) result = claim_of(std::move(result)).retry(deadline_in(5s));
  const Lease lease = lease_of(std::move(result));
  EXPECT_NE(lease.token().str(), token);
  EXPECT_EQ(truth.get(key), lease.token().str());
  bool withdrawn = false;
  for (const auto& line : monitor.lines()) {
    if (line.by_script() || line.argv.size() < 8 || line.argv[7] != token) continue;
    if (line.argv.size() == 8) {  // no more than the token: a release
      withdrawn = true;
    } else {
      EXPECT_FALSE(withdrawn) << "an acquire with a token that had been withdrawn";
    }
  }
  EXPECT_TRUE(withdrawn);
}

TEST_P(Promise3ATokenIsOneAcquisition, AWithdrawnTokenIsNeverSentAgain) {
  FaultProxy proxy(address_of(server), front());
  Client doubtful(proxy.url());
  Claim claim = unanswered(doubtful, proxy, key);
  const std::string token = claim.token().str();
  proxy.heal();
  EXPECT_EQ(std::move(claim).withdraw(deadline_in(5s)), ReleaseOutcome::released);
  Monitor monitor(server.tcp());
  // NOLINTBEGIN(bugprone-use-after-move): what a claim does after its end is the point
  const Error error = error_of(std::move(claim).retry(deadline_in(1s)));
  EXPECT_EQ(error.code, Errc::lost);
  EXPECT_EQ(std::move(claim).withdraw(deadline_in(1s)), ReleaseOutcome::not_held);
  std::move(claim).abandon();
  // NOLINTEND(bugprone-use-after-move)
  const Lease lease = taken(doubtful, key);
  EXPECT_NE(lease.token().str(), token);
  for (const auto& line : monitor.lines()) EXPECT_FALSE(contains(line.line, token)) << line.line;
}

TEST_P(Promise3ATokenIsOneAcquisition, AnAbandonedClaimLeavesItsTokenToBeHandedOver) {
  FaultProxy proxy(address_of(server), front());
  Client doubtful(proxy.url());
  Claim claim = unanswered(doubtful, proxy, key);
  const OwnerToken token = claim.token();
  std::move(claim).abandon();
  proxy.heal();
  Lease adopted = client.adopt(key, token);
  EXPECT_EQ(adopted.renew(), RenewOutcome::renewed);
  EXPECT_TRUE(adopted.held());
  EXPECT_EQ(truth.get(key), token.str());
}

TEST_P(Promise3ATokenIsOneAcquisition, AReleasedLeaseSendsNothingMore) {
  Lease lease = taken(client, key);
  ASSERT_EQ(lease.release(), ReleaseOutcome::released);
  Monitor monitor(server.tcp());
  EXPECT_EQ(lease.renew(), RenewOutcome::lost);
  EXPECT_EQ(lease.release(), ReleaseOutcome::not_held);
  EXPECT_TRUE(monitor.lines().empty());
}

TEST_P(Promise3ATokenIsOneAcquisition, OneClientDoesNotReenterItsOwnLease) {
  const Lease lease = taken(client, key);
  EXPECT_EQ(client.try_acquire(key).outcome(), AcquireOutcome::busy);
}

}  // namespace
}  // namespace redlease
