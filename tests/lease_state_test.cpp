// The state table of lease.hpp, row by row, and what a lease says about itself.
#include <thread>

#include "promise_support.hpp"
#include "redlease/metrics.hpp"
#include "support/fake_clock.hpp"
#include "support/monitor.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class LeaseStates : public ::testing::Test {
 protected:
  Lease held() { return taken(client, key, limited(500ms)); }
  void pass_deadline(const Lease& lease) { clock.advance(lease.deadline() - clock.now()); }
  std::size_t requests() {
    std::size_t count = 0;
    for (const auto& line : monitor.lines()) count += !line.by_script();
    monitor.clear();
    return count;
  }

  RedisServer& server{shared_server()};
  RawClient truth{server.tcp()};
  const std::string key{fresh_key()};
  FakeClock clock;
  Client client{server.url_unix(), {.clock = &clock}};
  Monitor monitor{server.tcp()};
};

TEST_F(LeaseStates, Held) {
  Lease lease = held();
  EXPECT_TRUE(lease.held());
  EXPECT_EQ(lease.loss(), std::nullopt);
  EXPECT_EQ(lease.key().str(), key);
  EXPECT_FALSE(lease.last_error().code);
  for (int i = 0; i < 10; ++i) {
    clock.advance(1s);
    const Deadline before = lease.deadline();
    EXPECT_EQ(lease.renew(), RenewOutcome::renewed);
    EXPECT_GT(lease.deadline(), before);
  }
  EXPECT_EQ(lease.release(), ReleaseOutcome::released);
  EXPECT_FALSE(truth.exists(key));
}

TEST_F(LeaseStates, HeldWhoseDeadlinePasses) {
  Lease lease = held();
  pass_deadline(lease);
  EXPECT_FALSE(lease.held());
  EXPECT_EQ(lease.loss(), LossCause::deadline);
  requests();
  EXPECT_EQ(lease.renew(), RenewOutcome::lost);
  EXPECT_EQ(lease.last_error().code, Errc::lost);
  EXPECT_EQ(requests(), 0U);
  EXPECT_EQ(lease.release(), ReleaseOutcome::not_held);
  EXPECT_FALSE(truth.exists(key)) << "it is still given back on the server";
  EXPECT_EQ(lease.loss(), LossCause::deadline);
  EXPECT_EQ(lease.release(), ReleaseOutcome::not_held);
}

TEST_F(LeaseStates, HeldWhoseDeadlinePassesAndIsDropped) {
  {
    const Lease lease = held();
    pass_deadline(lease);
  }
  EXPECT_FALSE(truth.exists(key));
}

TEST_F(LeaseStates, Adopted) {
  Lease giver = held();
  giver.abandon();
  requests();
  Lease lease = client.adopt(key, giver.token(), limited(500ms));
  EXPECT_EQ(requests(), 0U) << "adopt sends nothing";
  EXPECT_FALSE(lease.held());
  EXPECT_EQ(lease.loss(), std::nullopt);
  EXPECT_EQ(lease.fencing_token(), std::nullopt);
  EXPECT_EQ(lease.remaining(), 0ms);
  clock.advance(24h);
  EXPECT_EQ(lease.loss(), std::nullopt) << "time does nothing to it";
  EXPECT_EQ(lease.renew(), RenewOutcome::renewed);
  EXPECT_TRUE(lease.held());
  EXPECT_EQ(lease.fencing_token(), giver.fencing_token());
  EXPECT_EQ(lease.token(), giver.token());
  EXPECT_EQ(lease.release(), ReleaseOutcome::released);
}

TEST_F(LeaseStates, AdoptedAndDroppedReleasesNothing) {
  Lease giver = held();
  giver.abandon();
  requests();
  { const Lease lease = client.adopt(key, giver.token()); }
  EXPECT_EQ(requests(), 0U);
  EXPECT_EQ(truth.get(key), giver.token().str());
}

TEST_F(LeaseStates, AdoptedAndReleasedIsAsTheServerFinds) {
  Lease giver = held();
  giver.abandon();
  EXPECT_EQ(client.adopt(key, OwnerToken("another")).release(), ReleaseOutcome::not_held);
  EXPECT_EQ(client.adopt(key, giver.token()).release(), ReleaseOutcome::released);
  EXPECT_EQ(client.adopt(key, giver.token()).release(), ReleaseOutcome::not_held);
}

TEST_F(LeaseStates, AdoptedWithTheWrongTokenIsLostAtTheFirstRenewal) {
  Lease owner = held();
  Lease taken = client.adopt(key, OwnerToken("another"));
  EXPECT_EQ(taken.renew(), RenewOutcome::lost);
  EXPECT_EQ(taken.loss(), LossCause::taken);
  EXPECT_FALSE(taken.held());
  EXPECT_EQ(taken.fencing_token(), std::nullopt);
  Lease gone = client.adopt(key + "free", OwnerToken("another"));
  EXPECT_EQ(gone.renew(), RenewOutcome::lost);
  EXPECT_EQ(gone.loss(), LossCause::gone);
  EXPECT_EQ(owner.renew(), RenewOutcome::renewed);
}

TEST_F(LeaseStates, AdoptedAndNotOursIsNoLossToAnybodyWhoCountsThem) {
  Lease owner = held();
  const auto metrics = std::make_shared<Metrics>();
  Client other(server.url_unix(), {.observer = metrics});
  EXPECT_EQ(other.adopt(key, OwnerToken("another")).renew(), RenewOutcome::lost);
  EXPECT_EQ(other.adopt(key + "free", OwnerToken("another")).renew(), RenewOutcome::lost);
  const MetricsSnapshot seen = metrics->snapshot();
  EXPECT_EQ(seen.held, 0U);
  EXPECT_EQ(seen.lost_taken + seen.lost_gone, 0U);
}

TEST_F(LeaseStates, HandedOverToAnotherProcessInThreeSteps) {
  Lease giver = held();
  const std::string printed = giver.token().str();
  giver.abandon();
  EXPECT_FALSE(giver.held());
  EXPECT_EQ(giver.release(), ReleaseOutcome::not_held) << "it is another's now";
  EXPECT_EQ(truth.get(key), printed);
  Client elsewhere(server.url_tcp());
  Lease taker = elsewhere.adopt(key, OwnerToken(printed));
  EXPECT_EQ(taker.renew(), RenewOutcome::renewed);
  EXPECT_EQ(taker.release(), ReleaseOutcome::released);
}

TEST_F(LeaseStates, LostSendsNothingMore) {
  Lease lease = held();
  truth.del(key);
  ASSERT_EQ(lease.renew(), RenewOutcome::lost);
  const Lease next = held();
  requests();
  EXPECT_EQ(lease.renew(), RenewOutcome::lost);
  EXPECT_EQ(lease.release(), ReleaseOutcome::not_held);
  EXPECT_EQ(lease.loss(), LossCause::gone);
  EXPECT_EQ(requests(), 0U);
  EXPECT_TRUE(next.held());
}

TEST_F(LeaseStates, Released) {
  Lease lease = held();
  ASSERT_EQ(lease.release(), ReleaseOutcome::released);
  requests();
  EXPECT_FALSE(lease.held());
  EXPECT_EQ(lease.loss(), std::nullopt);
  EXPECT_EQ(lease.remaining(), 0ms);
  pass_deadline(lease);
  EXPECT_EQ(lease.loss(), std::nullopt) << "what was given back is not lost";
  EXPECT_EQ(lease.renew(), RenewOutcome::lost);
  EXPECT_EQ(lease.release(), ReleaseOutcome::not_held);
  EXPECT_EQ(requests(), 0U);
}

TEST_F(LeaseStates, ReleasedTwiceWithAnotherHolderInBetween) {
  Lease lease = held();
  lease.release();
  const Lease next = held();
  EXPECT_EQ(lease.release(), ReleaseOutcome::not_held);
  lease.abandon();
  EXPECT_EQ(truth.get(key), next.token().str());
}

TEST_F(LeaseStates, MovedFrom) {
  Lease lease = held();
  Lease moved = std::move(lease);
  EXPECT_FALSE(lease.held());  // NOLINT(bugprone-use-after-move): that it is empty is the point
  EXPECT_EQ(lease.remaining(), 0ms);
  EXPECT_EQ(lease.loss(), std::nullopt);
  EXPECT_EQ(lease.fencing_token(), std::nullopt);
  EXPECT_EQ(lease.renew(), RenewOutcome::lost);
  EXPECT_EQ(lease.release(), ReleaseOutcome::not_held);
  EXPECT_FALSE(lease.last_error().code);
  lease.abandon();
  EXPECT_TRUE(moved.held());
  EXPECT_THROW((void)LeaseGuard(client, std::move(lease)).owns(), LeaseLost);
}

TEST_F(LeaseStates, MovedOverReleasesWhatWasHeld) {
  Lease lease = held();
  Lease other = taken(client, key + "other");
  lease = std::move(other);
  EXPECT_FALSE(truth.exists(key));
  EXPECT_EQ(lease.key().str(), key + "other");
  EXPECT_TRUE(lease.held());
  Lease& itself = lease;
  lease = std::move(itself);
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(truth.exists(key + "other"));
}

TEST_F(LeaseStates, TakenOutOfAResultLeavesAnEmptyOneBehind) {
  AcquireResult result = client.try_acquire(key);
  const std::optional<Lease> first = std::move(result).lease();
  ASSERT_TRUE(first && first->held());
  // NOLINTNEXTLINE(bugprone-use-after-move): that nothing is left is the point
  std::optional<Lease> second = std::move(result).lease();
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->held());
  EXPECT_EQ(second->release(), ReleaseOutcome::not_held);
  EXPECT_TRUE(truth.exists(key));
}

TEST_F(LeaseStates, InspectShowsWhoHoldsItToEverybody) {
  const Lease lease = taken(client, key, {.label = "nightly run"});
  Client elsewhere(server.url_tcp());
  std::this_thread::sleep_for(20ms);
  const LeaseInfo info = elsewhere.inspect(key).value();
  EXPECT_TRUE(info.held);
  EXPECT_TRUE(info.holder.ends_with(":" + std::to_string(::getpid()))) << info.holder;
  EXPECT_EQ(info.label, "nightly run");
  EXPECT_EQ(info.fence, lease.fencing_token());
  EXPECT_GE(info.held_for.value_or(0ms), 20ms);
  EXPECT_GT(info.remaining.value_or(0ms), 20s);
}

TEST_F(LeaseStates, ThousandNamesDoNotMeet) {
  std::vector<Lease> leases;
  for (int i = 0; i < 1'000; ++i) leases.push_back(taken(client, key + std::to_string(i)));
  for (Lease& lease : leases) EXPECT_EQ(lease.release(), ReleaseOutcome::released);
}

}  // namespace
}  // namespace redlease
