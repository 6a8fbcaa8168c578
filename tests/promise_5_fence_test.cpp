// Promise 5: a fence with every acquire, which grows with every grant of a name.
#include <thread>

#include "promise_support.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class Promise5AFenceWithEveryAcquire : public OverBothWays {
 protected:
  std::uint64_t grant(Client& by) {
    Lease lease = lease_of(by.acquire(key, {.ttl = 30s, .wait = 10s}));
    EXPECT_EQ(lease.release(), ReleaseOutcome::released);
    return fence_of(lease);
  }
};
INSTANTIATE_TEST_SUITE_P(Over, Promise5AFenceWithEveryAcquire, both_ways, name_of);

constexpr std::uint64_t highest = (std::uint64_t{1} << 53) - 2;

TEST_P(Promise5AFenceWithEveryAcquire, GrowsThroughReleaseExpiryBreakFlushAndTheLossOfItsHelper) {
  std::uint64_t last = 0;
  const auto expect_grown = [&](const char* through) {
    const std::uint64_t next = grant(client);
    EXPECT_GT(next, last) << through;
    last = next;
  };
  for (int round = 0; round < 3; ++round) {
    expect_grown("release");
    {
      Lease lease = taken(client, key, limited(100ms, 300ms));
      EXPECT_GT(fence_of(lease), last);
      last = fence_of(lease);
      lease.abandon();
    }
    expect_grown("expiry");
    {
      const Lease lease = taken(client, key);
      last = fence_of(lease);
      EXPECT_TRUE(client.break_lease(key).value());
    }
    expect_grown("break");
    truth.flushall();
    expect_grown("FLUSHALL");
    EXPECT_TRUE(truth.del(meta_of(key)));
    expect_grown("deletion of the helper key");
  }
}

TEST_P(Promise5AFenceWithEveryAcquire, GrowsThroughARestartWithoutPersistence) {
  RedisServer mortal;
  Client of_mortal(address_of(mortal).url());
  std::uint64_t last = grant(of_mortal);
  for (int i = 0; i < 3; ++i) {
    mortal.restart();
    const std::uint64_t next = grant(of_mortal);
    EXPECT_GT(next, last);
    last = next;
  }
}

TEST_P(Promise5AFenceWithEveryAcquire, GrowsOverAThousandGrants) {
  std::uint64_t last = 0;
  for (int i = 0; i < 1'000; ++i) {
    const std::uint64_t next = grant(client);
    ASSERT_GT(next, last);
    last = next;
  }
}

TEST_P(Promise5AFenceWithEveryAcquire, IsCapturedAtTheGrantAndNeverReadAgain) {
  Lease lease = taken(client, key);
  const std::uint64_t fence = fence_of(lease);
  truth.set(meta_of(key), "1 nonsense 1 x");
  ASSERT_EQ(lease.renew(), RenewOutcome::renewed);
  EXPECT_EQ(fence_of(lease), fence);
  ASSERT_EQ(lease.release(), ReleaseOutcome::released);
  EXPECT_EQ(fence_of(lease), fence) << "a late writer must still show the old one";
}

TEST_P(Promise5AFenceWithEveryAcquire, NonsenseInTheHelperKeyDoesNotStopIt) {
  const std::uint64_t before = grant(client);
  for (const std::string nonsense : {"", "x", "-5 a b", "12", "99999999999999999999 a 1 b", "\xff\xff"}) {
    truth.command({"SET", meta_of(key), nonsense, "PX", "100000"});
    const AcquireResult result = client.try_acquire(key);
    if (result.outcome() == AcquireOutcome::unavailable) {
      EXPECT_EQ(error_of(result).code, Errc::server_error) << describe(result);
      EXPECT_TRUE(nonsense.starts_with("999")) << nonsense;
      EXPECT_FALSE(truth.exists(key));
    } else {
      EXPECT_EQ(result.outcome(), AcquireOutcome::acquired) << describe(result);
    }
  }
  truth.del(meta_of(key));
  EXPECT_GT(grant(client), before);
}

TEST_P(Promise5AFenceWithEveryAcquire, AFloorHealsAResourceThatHasSeenMore) {
  const std::uint64_t floor = (std::uint64_t{1} << 52) - 1;
  LeaseOptions raised;
  raised.fence_floor = FencingToken{23};
  Lease lease = taken(client, key, raised);
  EXPECT_GT(fence_of(lease), std::uint64_t{23});
  const std::uint64_t plain = fence_of(lease);
  lease.release();
  raised.fence_floor = FencingToken{floor};
  lease = taken(client, key, raised);
  EXPECT_GT(fence_of(lease), floor);
  EXPECT_GT(fence_of(lease), plain);
  const std::uint64_t high = fence_of(lease);
  lease.release();
  EXPECT_GT(grant(client), high) << "without the floor of its own";
}

TEST_P(Promise5AFenceWithEveryAcquire, GoesUpToTheLastExactNumberAndNoFurther) {
  truth.command({"SET", meta_of(key), std::to_string(highest - 1) + " t 1 h", "PX", "100000"});
  EXPECT_EQ(grant(client), highest);
  const Error error = error_of(client.try_acquire(key));
  EXPECT_EQ(error.code, Errc::server_error);
  expect_for_people(error, key, address_of(server).path.empty() ? "127.0.0.1" : address_of(server).path);
  EXPECT_TRUE(contains(error.detail, "2^53 - 2")) << error.detail;
  EXPECT_FALSE(truth.exists(key));
  EXPECT_TRUE(truth.get(meta_of(key))->starts_with(std::to_string(highest))) << "regressed or rounded";
}

TEST_P(Promise5AFenceWithEveryAcquire, IsAboutTheServersClock) {
  const auto seconds = std::stoull(truth.command({"TIME"}).elements.at(0).text);
  EXPECT_GE(grant(client) >> 20, seconds);
}

TEST_P(Promise5AFenceWithEveryAcquire, IsRememberedForThirtyDaysAndLongerIfItIsAheadOfTheClock) {
  constexpr long long days30 = 30LL * 24 * 3600 * 1000;
  grant(client);
  EXPECT_LE(truth.pttl(meta_of(key)), days30 + 60'000);
  EXPECT_GT(truth.pttl(meta_of(key)), days30 - 60'000);
  // As far ahead as ten days: a second is 2^20 steps.
  const auto now = std::stoull(truth.command({"TIME"}).elements.at(0).text);
  LeaseOptions raised;
  raised.fence_floor = FencingToken{(now + 10ULL * 24 * 3600) << 20};
  taken(client, key, raised).release();
  EXPECT_GT(truth.pttl(meta_of(key)), days30 + 9LL * 24 * 3600 * 1000);
  EXPECT_LT(truth.pttl(meta_of(key)), days30 + 11LL * 24 * 3600 * 1000);
}

TEST_P(Promise5AFenceWithEveryAcquire, AnAdoptedLeaseKeepsTheFenceOfItsGrant) {
  Lease giver = taken(client, key);
  giver.abandon();
  Client elsewhere(url);
  Lease adopted = elsewhere.adopt(key, giver.token());
  EXPECT_EQ(adopted.fencing_token(), std::nullopt);
  ASSERT_EQ(adopted.renew(), RenewOutcome::renewed);
  EXPECT_EQ(adopted.fencing_token(), giver.fencing_token());
  const auto remembered = truth.get(meta_of(key));
  ASSERT_EQ(adopted.renew(), RenewOutcome::renewed);
  EXPECT_EQ(truth.get(meta_of(key)), remembered) << "a renewal makes no fence";
  EXPECT_EQ(adopted.fencing_token(), giver.fencing_token());
}

TEST_P(Promise5AFenceWithEveryAcquire, AdoptingWhatTheServerForgotMakesANewAndHigherFence) {
  Lease giver = taken(client, key);
  giver.abandon();
  truth.del(meta_of(key));
  Lease adopted = client.adopt(key, giver.token());
  ASSERT_EQ(adopted.renew(), RenewOutcome::renewed);
  EXPECT_GT(fence_of(adopted), fence_of(giver));
}

TEST_P(Promise5AFenceWithEveryAcquire, AStaleWriterIsRefusedByIt) {
  Lease stale = taken(client, key, limited(100ms, 300ms));
  std::this_thread::sleep_for(310ms);
  const Lease current = lease_of(client.acquire(key, {.ttl = 30s, .wait = 5s}));
  const std::string resource = key + "-resource";
  EXPECT_TRUE(fenced_set(client, resource, "new", *current.fencing_token()).value().accepted);
  const Fenced refused = fenced_set(client, resource, "old", *stale.fencing_token()).value();
  EXPECT_FALSE(refused.accepted);
  EXPECT_EQ(refused.highest_seen, *current.fencing_token());
  EXPECT_EQ(truth.command({"HGET", resource, "value"}).text, "new");
  EXPECT_EQ(truth.pttl(resource), -1) << "it is the user's data";
  EXPECT_TRUE(fenced_set(client, resource, "newer", *current.fencing_token()).value().accepted);
}

}  // namespace
}  // namespace redlease
