// LeaseGuard: a lease tied to a scope.
#include <array>
#include <thread>

#include "promise_support.hpp"
#include "support/fake_clock.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class LeaseGuards : public ::testing::Test {
 protected:
  void pass_deadline(const LeaseGuard& guard) { clock.advance(guard.deadline() - clock.now()); }

  RedisServer& server{shared_server()};
  RawClient truth{server.tcp()};
  const std::string key{fresh_key()};
  FakeClock clock;
  Client client{server.url_unix(), {.clock = &clock}};
};

TEST_F(LeaseGuards, HoldsForItsScope) {
  {
    const LeaseGuard guard(client, key);
    EXPECT_TRUE(guard.owns());
    EXPECT_TRUE(guard);
    EXPECT_TRUE(guard.held());
    EXPECT_NO_THROW(guard.ensure_held());
    EXPECT_EQ(truth.get(key), guard.token().str());
    EXPECT_EQ(guard.key().str(), key);
    EXPECT_GT(guard.fencing_token(), FencingToken{0});
    EXPECT_FALSE(guard.stop_token().stop_requested());
    EXPECT_EQ(guard.loss(), std::nullopt);
  }
  EXPECT_FALSE(truth.exists(key));
}

TEST_F(LeaseGuards, AnExceptionInTheScopeReleasesBeforeTheHandlerRunsAndIsNotMasked) {
  for (const bool lost : {false, true}) {
    try {
      const LeaseGuard guard(client, key);
      if (lost) truth.command({"SET", key, "another", "PX", "60000"});
      throw std::logic_error("the body's own");
    } catch (const std::logic_error& error) {
      EXPECT_STREQ(error.what(), "the body's own");
      EXPECT_EQ(truth.get(key), lost ? std::optional<std::string>("another") : std::nullopt);
    }
  }
}

TEST_F(LeaseGuards, TriedOnAHeldKeyOwnsNothingAndThrowsNothing) {
  const LeaseGuard holder(client, key);
  LeaseGuard tried(client, key, std::try_to_lock, {.ttl = 30s, .wait = forever});
  EXPECT_FALSE(tried);
  EXPECT_FALSE(tried.held());
  EXPECT_THROW(tried.ensure_held(), LeaseLost);
  EXPECT_THROW((void)tried.fencing_token(), LeaseLost);
  EXPECT_EQ(tried.deadline(), Deadline::min());
  EXPECT_EQ(tried.loss(), std::nullopt);
  EXPECT_FALSE(tried.stop_token().stop_requested());
  EXPECT_EQ(tried.release(), ReleaseOutcome::not_held);
  EXPECT_FALSE(tried.last_error().code);
}

TEST_F(LeaseGuards, TriedOnAFreeKeyOwnsIt) {
  LeaseGuard guard(client, key, std::try_to_lock, {.ttl = 30s});
  EXPECT_TRUE(guard);
  EXPECT_EQ(guard.release(), ReleaseOutcome::released);
  EXPECT_FALSE(guard);
  EXPECT_FALSE(guard.held());
  EXPECT_THROW(guard.ensure_held(), LeaseLost);
  EXPECT_EQ(guard.loss(), std::nullopt) << "given back is not lost";
  EXPECT_FALSE(guard.stop_token().stop_requested());
}

TEST_F(LeaseGuards, ReleasedByHandLeavesTheNextHolderAlone) {
  {
    LeaseGuard guard(client, key);
    EXPECT_EQ(guard.release(), ReleaseOutcome::released);
    EXPECT_EQ(guard.release(), ReleaseOutcome::not_held);
    truth.command({"SET", key, "another", "PX", "60000"});
  }
  EXPECT_EQ(truth.get(key), "another");
}

TEST_F(LeaseGuards, ALossStopsTheWorkAndIsToldOnce) {
  std::atomic<int> told{0};
  LeaseOptions options{.ttl = 10s};
  options.on_lost = [&](LossCause cause) {
    EXPECT_EQ(cause, LossCause::deadline);
    ++told;
  };
  LeaseGuard guard(client, key, options);
  const std::stop_token stop = guard.stop_token();
  EXPECT_TRUE(guard.held());
  EXPECT_EQ(told, 0);
  pass_deadline(guard);
  EXPECT_FALSE(guard.held()) << "at once, whenever the signal comes";
  EXPECT_TRUE(eventually([&] { return stop.stop_requested() && told == 1; }));
  EXPECT_TRUE(guard.stop_token().stop_requested());
  try {
    guard.ensure_held();
    FAIL() << "it is lost";
  } catch (const LeaseLost& lost) {
    EXPECT_EQ(lost.code(), Errc::lost);
    EXPECT_TRUE(contains(lost.what(), key) && contains(lost.what(), "deadline")) << lost.what();
  }
  EXPECT_TRUE(guard.owns()) << "owns() is not held()";
  EXPECT_EQ(guard.loss(), LossCause::deadline);
  EXPECT_EQ(guard.release(), ReleaseOutcome::not_held);
  EXPECT_EQ(guard.loss(), LossCause::deadline);
  EXPECT_EQ(told, 1);
}

TEST_F(LeaseGuards, ATokenAskedForAfterTheLossIsStopped) {
  const LeaseGuard guard(client, key, {.ttl = 10s});
  pass_deadline(guard);
  EXPECT_TRUE(eventually([&] { return guard.stop_token().stop_requested(); }));
}

TEST_F(LeaseGuards, AnOnLostThatThrowsHarmsNobody) {
  std::atomic<bool> thrown{false};
  LeaseOptions options{.ttl = 10s};
  options.on_lost = [&](LossCause) {
    thrown = true;
    throw std::runtime_error("the user's");
  };
  const LeaseGuard guard(client, key, options);
  pass_deadline(guard);
  EXPECT_FALSE(guard.held());
  EXPECT_TRUE(eventually([&] { return thrown.load(); }));
  EXPECT_THROW(guard.ensure_held(), LeaseLost);
}

TEST_F(LeaseGuards, IsAskedFromSeveralThreadsAtOnce) {
  std::atomic<int> told{0};
  LeaseOptions options{.ttl = 10s};
  options.on_lost = [&](LossCause) { ++told; };
  const LeaseGuard guard(client, key, options);
  {
    std::vector<std::jthread> crew;
    for (int i = 0; i < 4; ++i) {
      crew.emplace_back([&] {
        while (guard.held()) (void)guard.stop_token();
      });
    }
    std::this_thread::sleep_for(20ms);
    pass_deadline(guard);
  }
  EXPECT_TRUE(eventually([&] { return told == 1; }));
}

TEST_F(LeaseGuards, StopsTheWorkBeforeTheDeadlineWhereAsked) {
  std::atomic<bool> told{false};
  LeaseOptions options{.ttl = 10s, .renew = false, .stop_before = 2s};
  options.on_lost = [&](LossCause) { told = true; };
  const LeaseGuard guard(client, key, options);
  const std::stop_token stop = guard.stop_token();
  clock.advance(guard.deadline() - clock.now() - 2s - 1ns);
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(stop.stop_requested());
  clock.advance(1ns);
  EXPECT_TRUE(eventually([&] { return stop.stop_requested(); }));
  EXPECT_TRUE(guard.held()) << "still ours";
  EXPECT_FALSE(told) << "not lost yet";
  clock.advance(2s);
  EXPECT_FALSE(guard.held());
  EXPECT_TRUE(eventually([&] { return told.load(); }));
}

TEST_F(LeaseGuards, NoDeadlineLiesBehindMaxHold) {
  LeaseOptions options{.ttl = 30s};
  options.max_hold = 5s;
  const Deadline before = clock.now();
  const LeaseGuard guard(client, key, options);
  EXPECT_EQ(guard.deadline(), before + 5s);
  clock.advance(5s - 1ns);
  EXPECT_TRUE(guard.held());
  clock.advance(1ns);
  EXPECT_FALSE(guard.held());
  EXPECT_EQ(guard.loss(), LossCause::max_hold);
}

TEST_F(LeaseGuards, AMaxHoldBeyondTheTtlChangesNothing) {
  LeaseOptions options{.ttl = 10s, .renew = false};
  options.max_hold = 60s;
  const LeaseGuard guard(client, key, options);
  EXPECT_EQ(guard.deadline(), clock.now() + 10s - 102ms);
  pass_deadline(guard);
  EXPECT_EQ(guard.loss(), LossCause::deadline);
}

TEST_F(LeaseGuards, AMovedGuardHoldsAndTheOtherIsEmpty) {
  LeaseGuard guard(client, key);
  const std::stop_token stop = guard.stop_token();
  LeaseGuard moved = std::move(guard);
  EXPECT_FALSE(guard.owns());  // NOLINT(bugprone-use-after-move): that it is empty is the point
  EXPECT_FALSE(guard.held());
  EXPECT_EQ(guard.release(), ReleaseOutcome::not_held);
  EXPECT_THROW(guard.ensure_held(), LeaseLost);
  EXPECT_TRUE(moved.held());
  EXPECT_TRUE(truth.exists(key));
  LeaseGuard over(client, key + "over");
  over = std::move(moved);
  EXPECT_FALSE(truth.exists(key + "over")) << "what it held before was not released";
  EXPECT_TRUE(over.held());
  EXPECT_FALSE(stop.stop_requested());
}

TEST_F(LeaseGuards, MayLiveInAContainer) {
  std::vector<LeaseGuard> guards;
  for (int i = 0; i < 20; ++i) guards.emplace_back(client, key + std::to_string(i));
  for (const LeaseGuard& guard : guards) EXPECT_TRUE(guard.held());
  guards.clear();
  EXPECT_FALSE(truth.exists(key + "0"));
}

TEST_F(LeaseGuards, TakesOverAHeldLease) {
  Lease lease = taken(client, key);
  const FencingToken fence = *lease.fencing_token();
  {
    const LeaseGuard guard(client, std::move(lease), {.ttl = 60s});
    EXPECT_TRUE(guard.held());
    EXPECT_EQ(guard.fencing_token(), fence);
  }
  EXPECT_FALSE(truth.exists(key));
}

TEST_F(LeaseGuards, TakesOverAnAdoptedLeaseByRenewingItOnce) {
  Lease giver = taken(client, key);
  giver.abandon();
  const LeaseGuard guard(client, client.adopt(key, giver.token()), {.ttl = 60s});
  EXPECT_TRUE(guard.held());
  EXPECT_EQ(guard.fencing_token(), giver.fencing_token());
  EXPECT_GT(truth.pttl(key), 40'000) << "with the options given";
}

TEST_F(LeaseGuards, RefusesALeaseThatIsNotHeld) {
  Lease gone = client.adopt(key, OwnerToken("nobody's"));
  EXPECT_THROW((void)LeaseGuard(client, std::move(gone)).owns(), LeaseLost);
  Lease released = taken(client, key);
  released.release();
  EXPECT_THROW((void)LeaseGuard(client, std::move(released)).owns(), LeaseLost);
  Lease expired = taken(client, key);
  clock.advance(30s);
  EXPECT_THROW((void)LeaseGuard(client, std::move(expired)).owns(), LeaseLost);
}

TEST_F(LeaseGuards, ThatCannotBeHadThrowsWithTheTruth) {
  const LeaseGuard holder(client, key, {.label = "the first"});
  Client real(server.url_unix());
  try {
    const LeaseGuard guard(real, key);
    FAIL() << "two at once";
  } catch (const AcquireError& error) {
    EXPECT_EQ(error.outcome(), AcquireOutcome::busy);
    EXPECT_TRUE(contains(error.what(), "the first")) << error.what();
  }
}

}  // namespace
}  // namespace redlease
