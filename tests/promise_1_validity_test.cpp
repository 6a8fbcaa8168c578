// Promise 1: nobody is told "yours" in error.
#include <thread>

#include "promise_support.hpp"
#include "redlease/store/redis_store.hpp"
#include "redlease/wire/endpoint.hpp"
#include "support/fake_clock.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class Promise1NobodyIsToldYoursInError : public OverBothWays {
 protected:
  // A Client on a store that can be looked into, both on a clock that the test moves.
  FakeClock clock;
  std::shared_ptr<SpyStore> spy{std::make_shared<SpyStore>(
      std::make_shared<RedisStore>(parse_endpoint(url), 4, nullptr, static_cast<const Clock&>(clock)))};
  Client spied{spy, {.clock = &clock}};
};
INSTANTIATE_TEST_SUITE_P(Over, Promise1NobodyIsToldYoursInError, both_ways, name_of);

TEST_P(Promise1NobodyIsToldYoursInError, CountsFromBeforeTheRequestLeftAndNotFromTheReply) {
  FaultProxy proxy(address_of(server), front());
  Client slow(proxy.url());
  ASSERT_TRUE(reachable(slow));
  Faults late;
  late.down.delay = 150ms;
  proxy.set(late);
  const Deadline before = LeaseClock::now();
  const Lease lease = taken(slow, key, limited(3s));
  const Deadline after = LeaseClock::now();
  const Deadline counted_from = lease.deadline() - (30s - 300ms - 2ms);
  EXPECT_GE(counted_from, before);
  EXPECT_LE(counted_from, after - 150ms) << "counted from the reply";
}

TEST_P(Promise1NobodyIsToldYoursInError, ARenewalCountsFromBeforeItLeftToo) {
  FaultProxy proxy(address_of(server), front());
  Client slow(proxy.url());
  Lease lease = taken(slow, key, limited(3s));
  Faults late;
  late.down.delay = 150ms;
  proxy.set(late);
  const Deadline before = LeaseClock::now();
  ASSERT_EQ(lease.renew(), RenewOutcome::renewed);
  const Deadline counted_from = lease.deadline() - (30s - 300ms - 2ms);
  EXPECT_GE(counted_from, before);
  EXPECT_LE(counted_from, LeaseClock::now() - 150ms);
}

TEST_P(Promise1NobodyIsToldYoursInError, TheHolderCountsLessThanTheServerByTheDriftMargin) {
  for (const double drift : {0.0, 0.01, 0.4}) {
    Client drifting(url, {.drift = drift});
    const Deadline before = LeaseClock::now();
    Lease lease = taken(drifting, key, limited(1s, 10s));
    const auto margin = std::chrono::nanoseconds(static_cast<long long>(10e9 * drift)) + 2ms;
    EXPECT_GE(lease.deadline(), before + 10s - margin);
    EXPECT_LE(lease.deadline(), LeaseClock::now() + 10s - margin);
    const Millis mine = lease.remaining();
    const Millis theirs(truth.pttl(key));
    // The server rounds, and was asked later.
    EXPECT_LT(mine - std::chrono::duration_cast<Millis>(margin) - 1s, theirs);
    EXPECT_EQ(lease.release(), ReleaseOutcome::released);
  }
}

TEST_P(Promise1NobodyIsToldYoursInError, WhoIsHeldKnowsOfTheEndBeforeTheServerGrantsToAnother) {
  for (int round = 0; round < 5; ++round) {
    const Lease lease = taken(client, key, limited(100ms, 300ms));
    // As fast as it can, another asks; the moment it is granted, the first must know.
    Client other(url);
    std::optional<Lease> second;
    while (!second) second = std::move(other.try_acquire(key, limited(100ms, 300ms))).lease();
    EXPECT_FALSE(lease.held());
    EXPECT_EQ(lease.loss(), LossCause::deadline);
    EXPECT_GT(fence_of(*second), fence_of(lease));
    second->release();
  }
}

TEST_P(Promise1NobodyIsToldYoursInError, TheLossIsAnEventOfTheClockAndNeedsNoServer) {
  Lease lease = taken(client, key, limited(100ms, 400ms));
  Stopped stopped(server);
  while (LeaseClock::now() < lease.deadline()) {
    const bool held = lease.held();
    if (LeaseClock::now() < lease.deadline()) {
      EXPECT_TRUE(held);
    }
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_FALSE(lease.held());
  EXPECT_EQ(lease.remaining(), 0ms);
  EXPECT_EQ(lease.loss(), LossCause::deadline);
}

TEST_P(Promise1NobodyIsToldYoursInError, WithNothingLeftItIsNotHeld) {
  Lease lease = taken(spied, key, limited(300ms, 10s));
  clock.advance(lease.deadline() - clock.now() - 1ns);
  EXPECT_TRUE(lease.held());
  EXPECT_EQ(lease.loss(), std::nullopt);
  EXPECT_EQ(lease.remaining(), 0ms) << "rounded down";
  clock.advance(1ns);
  EXPECT_FALSE(lease.held());
  EXPECT_EQ(lease.remaining(), 0ms);
  EXPECT_EQ(lease.loss(), LossCause::deadline);
}

TEST_P(Promise1NobodyIsToldYoursInError, RemainingOnlyFallsAndIsZeroAfterTheLoss) {
  Lease lease = taken(spied, key, limited(300ms, 10s));
  Millis last = lease.remaining();
  EXPECT_EQ(last, 10s - 100ms - 2ms);
  for (int i = 0; i < 120; ++i) {
    clock.advance(100ms);
    EXPECT_LE(lease.remaining(), last);
    last = lease.remaining();
  }
  EXPECT_EQ(last, 0ms);
}

TEST_P(Promise1NobodyIsToldYoursInError, HeldIsFalseBeforeTheFirstByteOfAReleaseLeaves) {
  Lease lease = taken(spied, key, limited(300ms));
  int releases = 0;
  spy->before = [&](std::string_view verb) {
    if (verb != "release") return;
    ++releases;
    EXPECT_FALSE(lease.held());
    EXPECT_EQ(lease.remaining(), 0ms);
  };
  EXPECT_TRUE(lease.held());
  EXPECT_EQ(lease.release(), ReleaseOutcome::released);
  EXPECT_EQ(releases, 1);
  LeaseGuard guard(spied, key);
  spy->before = [&](std::string_view verb) {
    if (verb != "release") return;
    ++releases;
    EXPECT_FALSE(guard.held());
    EXPECT_FALSE(guard.owns());
  };
  EXPECT_EQ(guard.release(), ReleaseOutcome::released);
  EXPECT_EQ(releases, 2);
}

TEST_P(Promise1NobodyIsToldYoursInError, AGrantWhoseTimeIsOverWhenItIsReadIsGivenBackAndNotTold) {
  spy->behind = [&](std::string_view verb) {
    if (verb == "acquire") clock.advance(30s);
  };
  const Error error = error_of(spied.try_acquire(key, limited(300ms)));
  EXPECT_EQ(error.code, Errc::timed_out);
  expect_for_people(error, key, spy->server());
  EXPECT_FALSE(truth.exists(key));
}

TEST_P(Promise1NobodyIsToldYoursInError, AGrantThatCameTooLateAndCannotBeGivenBackIsUnknown) {
  ASSERT_TRUE(reachable(spied));
  std::optional<Stopped> stopped;
  spy->behind = [&](std::string_view verb) {
    if (verb != "acquire") return;
    clock.advance(30s);
    stopped.emplace(server);
  };
  Claim claim = claim_of(spied.try_acquire(key, limited(500ms)));
  expect_for_people(claim.error(), key, spy->server());
  EXPECT_EQ(claim.error().code, Errc::unknown_outcome);
  const std::string token = claim.token().str();
  spy->behind = [](std::string_view) {};
  stopped.reset();
  const auto outcome = std::move(claim).withdraw(deadline_in(5s));
  EXPECT_TRUE(outcome == ReleaseOutcome::released || outcome == ReleaseOutcome::not_held) << to_string(outcome);
  EXPECT_TRUE(eventually([&] { return !truth.exists(key); }));
}

TEST_P(Promise1NobodyIsToldYoursInError, ARenewalWhoseAnswerIsReadBehindTheDeadlineIsLost) {
  Lease lease = taken(spied, key, limited(300ms, 10s));
  spy->behind = [&](std::string_view verb) {
    if (verb == "renew") clock.advance(10s);
  };
  EXPECT_EQ(lease.renew(), RenewOutcome::lost);
  EXPECT_FALSE(lease.held()) << "who may have been told 'lost' is not told 'yours' again";
  EXPECT_EQ(lease.loss(), LossCause::deadline);
  expect_for_people(lease.last_error(), key, "");
}

TEST_P(Promise1NobodyIsToldYoursInError, ARenewalBehindTheDeadlineSendsNothing) {
  Lease lease = taken(spied, key, limited(300ms, 10s));
  int renewals = 0;
  spy->before = [&](std::string_view verb) { renewals += verb == "renew"; };
  clock.advance(10s);
  EXPECT_EQ(lease.renew(), RenewOutcome::lost);
  EXPECT_EQ(renewals, 0);
  EXPECT_FALSE(lease.held());
}

}  // namespace
}  // namespace redlease
