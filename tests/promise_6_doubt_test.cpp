// Promise 6: every doubt ends at a known time, and an orphan is our duty.
#include <thread>

#include "promise_support.hpp"
#include "support/monitor.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class Promise6EveryDoubtEnds : public OverBothWays {
 protected:
  void expect_gone_within_a_second(const std::string& name) {
    EXPECT_TRUE(eventually([&] { return !truth.exists(name); }, 1s)) << truth.get(name).value_or("");
  }
};
INSTANTIATE_TEST_SUITE_P(Over, Promise6EveryDoubtEnds, both_ways, name_of);

TEST_P(Promise6EveryDoubtEnds, AServerThatStandsStillIsUnknownWithinTheLimitAndLeavesNoOrphan) {
  const Millis took = best_of_three(350ms, [&] {
    EXPECT_TRUE(reachable(client));
    Stopped stopped(server);
    const Stopwatch watch;
    std::optional<Claim> claim = claim_of(client.try_acquire(key, limited(300ms)));
    const Millis elapsed = watch.elapsed_ms();
    EXPECT_GE(elapsed, 299ms);
    claim.reset();
    stopped.go_on();
    expect_gone_within_a_second(key);
    return elapsed;
  });
  EXPECT_LE(took, 350ms);
  // By token: whoever comes next is left alone by whatever is still on its way.
  const Lease next = lease_of(client.acquire(key, {.ttl = 30s, .wait = 5s}));
  std::this_thread::sleep_for(500ms);
  EXPECT_EQ(truth.get(key), next.token().str());
}

TEST_P(Promise6EveryDoubtEnds, TheWithdrawalGoesBehindTheDoubtfulRequestOnItsConnection) {
  FaultProxy proxy(address_of(server), front());
  Client doubtful(proxy.url());
  ASSERT_TRUE(reachable(doubtful));
  Monitor monitor(server.tcp());
  proxy.withhold_replies();
  std::optional<Claim> claim = claim_of(doubtful.try_acquire(key, limited(300ms)));
  const std::string token = claim->token().str();
  ASSERT_EQ(truth.get(key), token) << "no orphan to withdraw";
  claim.reset();
  expect_gone_within_a_second(key);
  std::vector<MonitorLine> ours;
  for (const auto& line : monitor.lines()) {
    if (!line.by_script() && contains(line.line, token)) ours.push_back(line);
  }
  ASSERT_GE(ours.size(), 2U);
  EXPECT_EQ(ours[1].name(), "EVAL") << "with the text, since nobody reads a NOSCRIPT";
  EXPECT_EQ(ours[1].client, ours[0].client) << "on another connection it might have overtaken the acquire";
}

TEST_P(Promise6EveryDoubtEnds, AnOrphanIsWithdrawnByTokenAndTheNextHoldersKeyIsLeftAlone) {
  FaultProxy proxy(address_of(server), front());
  Client doubtful(proxy.url());
  std::optional<Claim> claim = unanswered(doubtful, proxy, key);
  ASSERT_TRUE(client.break_lease(key).value());
  const Lease next = taken(client, key);
  const auto sent = proxy.newest().up;
  claim.reset();
  ASSERT_TRUE(eventually([&] { return proxy.newest().up > sent; })) << "no withdrawal was sent";
  proxy.heal();
  ASSERT_TRUE(reachable(doubtful));
  EXPECT_EQ(truth.get(key), next.token().str());
}

TEST_P(Promise6EveryDoubtEnds, AClaimWhoseConnectionBrokeIsWithdrawnOnAnother) {
  FaultProxy proxy(address_of(server), front());
  Client doubtful(proxy.url());
  ASSERT_TRUE(reachable(doubtful));
  proxy.cut_after(1'000'000, 1'000'000);
  proxy.withhold_replies();
  std::optional<Claim> claim = claim_of(doubtful.try_acquire(key, limited(300ms)));
  ASSERT_EQ(truth.get(key), claim->token().str());
  proxy.drop_all();
  proxy.heal();
  EXPECT_EQ(std::move(*claim).withdraw(deadline_in(5s)), ReleaseOutcome::released);
  EXPECT_FALSE(truth.exists(key));
}

TEST_P(Promise6EveryDoubtEnds, ARequestThatArrivesAfterItsNotAfterIsRefused) {
  FaultProxy proxy(address_of(server), front());
  Client doubtful(proxy.url());
  ASSERT_TRUE(reachable(doubtful));
  proxy.withhold_requests();
  Claim claim = claim_of(doubtful.try_acquire(key, limited(150ms)));
  std::this_thread::sleep_for(300ms);
  Monitor monitor(server.tcp());
  const auto before = proxy.newest().down;
  proxy.heal();
  ASSERT_TRUE(eventually([&] { return proxy.newest().down > before; }));
  std::size_t writes = 0;
  bool arrived = false;
  for (const auto& line : monitor.lines()) {
    arrived = arrived || line.name().starts_with("EVAL");
    writes += line.by_script() && line.name() == "SET";
  }
  EXPECT_TRUE(arrived);
  EXPECT_EQ(writes, 0U) << "an acquire from the past was carried out";
  EXPECT_FALSE(truth.exists(key));
  EXPECT_EQ(std::move(claim).withdraw(deadline_in(5s)), ReleaseOutcome::not_held);
}

TEST_P(Promise6EveryDoubtEnds, AClaimThatLivesThroughAStandstillIsRetriedWithOneFence) {
  ASSERT_TRUE(reachable(client));
  Stopped stopped(server);
  Claim claim = claim_of(client.try_acquire(key, limited(150ms)));
  const OwnerToken token = claim.token();
  std::this_thread::sleep_for(250ms);  // its not-after is over
  stopped.go_on();
  Lease lease = lease_of(std::move(claim).retry(deadline_in(5s)));
  EXPECT_EQ(lease.token(), token);
  EXPECT_EQ(truth.get(key), token.str());
  const std::string remembered = truth.get(meta_of(key)).value();
  EXPECT_EQ(remembered.substr(0, remembered.find(' ')), std::to_string(fence_of(lease)));
  EXPECT_TRUE(lease.held());
  EXPECT_EQ(lease.release(), ReleaseOutcome::released);
}

TEST_P(Promise6EveryDoubtEnds, AWithdrawalOnAnotherConnectionWaitsUntilTheServerWouldRefuse) {
  FaultProxy proxy(address_of(server), front());
  Client doubtful(proxy.url());
  ASSERT_TRUE(reachable(doubtful));
  proxy.withhold_requests();
  const Deadline begun = LeaseClock::now();
  Claim claim = claim_of(doubtful.try_acquire(key, limited(300ms)));
  proxy.drop_all();  // the request dies on the way, which nobody here can know
  proxy.heal();
  const auto outcome = std::move(claim).withdraw(deadline_in(5s));
  EXPECT_EQ(outcome, ReleaseOutcome::not_held) << to_string(outcome);
  EXPECT_GE(LeaseClock::now() - begun, 350ms) << "told before the doubt was over";
}

TEST_P(Promise6EveryDoubtEnds, AWithdrawalWithTooLittleTimeSaysThatItDoesNotKnow) {
  FaultProxy proxy(address_of(server), front());
  Client doubtful(proxy.url());
  ASSERT_TRUE(reachable(doubtful));
  proxy.withhold_requests();
  std::optional<Claim> claim;
  std::thread dropper([&] {
    eventually([&] { return proxy.newest().up_received > proxy.newest().up; });
    proxy.drop_all();
    proxy.heal();
  });
  claim = claim_of(doubtful.try_acquire(key, limited(2s)));
  dropper.join();
  const auto outcome = std::move(*claim).withdraw(deadline_in(300ms));
  EXPECT_EQ(outcome, ReleaseOutcome::unknown) << to_string(outcome);
}

TEST_P(Promise6EveryDoubtEnds, AnUnknownRenewalLeavesTheDeadlineWhereItWasAndMayBeTriedAgain) {
  FaultProxy proxy(address_of(server), front());
  Client doubtful(proxy.url());
  Lease lease = taken(doubtful, key, limited(200ms));
  const Deadline before = lease.deadline();
  proxy.withhold_replies();
  EXPECT_EQ(lease.renew(), RenewOutcome::unknown);
  expect_for_people(lease.last_error(), key, "");
  EXPECT_EQ(lease.deadline(), before);
  EXPECT_TRUE(lease.held());
  EXPECT_EQ(lease.loss(), std::nullopt);
  proxy.heal();
  EXPECT_EQ(lease.renew(), RenewOutcome::renewed) << lease.last_error().detail;
  EXPECT_GT(lease.deadline(), before);
  EXPECT_FALSE(lease.last_error().code);
}

TEST_P(Promise6EveryDoubtEnds, AnUnknownReleaseIsCarriedOutByTheServerOnceItGoesOn) {
  const Millis took = best_of_three(250ms, [&] {
    Lease lease = taken(client, key, limited(200ms));
    Stopped stopped(server);
    const Stopwatch watch;
    EXPECT_EQ(lease.release(), ReleaseOutcome::unknown);
    const Millis elapsed = watch.elapsed_ms();
    EXPECT_FALSE(lease.held());
    expect_for_people(lease.last_error(), key, "");
    stopped.go_on();
    expect_gone_within_a_second(key);
    return elapsed;
  });
  EXPECT_LE(took, 250ms);
}

TEST_P(Promise6EveryDoubtEnds, NeverConnectedToAServerThatStandsStillIsUnavailable) {
  const Stopped stopped(server);
  const Millis took = best_of_three(250ms, [&] {
    Client fresh(url);
    const Stopwatch watch;
    const Error error = error_of(fresh.try_acquire(key, limited(200ms)));
    const Millis elapsed = watch.elapsed_ms();
    EXPECT_EQ(error.code, Errc::timed_out);
    expect_for_people(error, key, address_of(server).path.empty() ? "127.0.0.1" : address_of(server).path);
    return elapsed;
  });
  EXPECT_LE(took, 250ms);
}

}  // namespace
}  // namespace redlease
