// Promise 8: every call has one absolute deadline, and every call that can wait obeys a stop token.
#include <thread>

#include "promise_support.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class Promise8OneDeadlinePerCall : public OverBothWays {
 protected:
  Promise8OneDeadlinePerCall() : proxied(proxy.url()) {}

  // Each verb in turn, on a connection that stands and that this does harm to.
  template <class Harm>
  void expect_each_call_within(Millis most, Harm harm) {
    const LeaseOptions options = limited(100ms);
    const auto timed = [&](const char* what, auto call) {
      ASSERT_TRUE(proxied.ping().has_value());
      harm();
      const Stopwatch watch;
      call();
      EXPECT_LE(watch.elapsed_ms(), most) << what;
      proxy.heal();
    };
    Lease lease = lease_of(proxied.try_acquire(key, options));
    timed("try_acquire", [&] {
      const AcquireResult result = proxied.try_acquire(key + "free", options);
      EXPECT_NE(result.outcome(), AcquireOutcome::acquired);
      EXPECT_NE(result.outcome(), AcquireOutcome::busy);
    });
    timed("acquire", [&] { EXPECT_NE(proxied.acquire(key + "free2", options).outcome(), AcquireOutcome::acquired); });
    timed("renew", [&] { EXPECT_NE(lease.renew(), RenewOutcome::lost); });
    timed("release", [&] { EXPECT_NE(lease.release(), ReleaseOutcome::not_held); });
  }

  FaultProxy proxy{address_of(server), front()};
  Client proxied;
};
INSTANTIATE_TEST_SUITE_P(Over, Promise8OneDeadlinePerCall, both_ways, name_of);

TEST_P(Promise8OneDeadlinePerCall, ADribblingServerStretchesNothing) {
  expect_each_call_within(150ms, [&] {
    Faults dribbling;
    dribbling.down.dribble = 1;
    dribbling.down.every = 25ms;
    proxy.set(dribbling);
  });
}

TEST_P(Promise8OneDeadlinePerCall, ABlackHoleStretchesNothing) {
  expect_each_call_within(150ms, [&] {
    proxy.withhold_requests();
    proxy.withhold_replies();
  });
}

TEST_P(Promise8OneDeadlinePerCall, ADribblingHandshakeCountsToo) {
  Faults dribbling;
  dribbling.down.dribble = 1;
  dribbling.down.every = 25ms;
  proxy.on_new(dribbling);
  Client fresh(proxy.url());
  const Stopwatch watch;
  const Error error = error_of(fresh.try_acquire(key, limited(100ms)));
  EXPECT_LE(watch.elapsed_ms(), 150ms);
  EXPECT_EQ(error.code, Errc::timed_out);
  expect_for_people(error, key, proxy.address().path.empty() ? "127.0.0.1" : proxy.address().path);
}

TEST_P(Promise8OneDeadlinePerCall, ADribblingConnectionThatIsFastEnoughStillServes) {
  Faults dribbling;
  dribbling.down.dribble = 3;
  dribbling.down.every = 1ms;
  proxy.on_new(dribbling);
  Client fresh(proxy.url());
  EXPECT_EQ(lease_of(fresh.try_acquire(key, limited(5s))).release(), ReleaseOutcome::released);
}

TEST_P(Promise8OneDeadlinePerCall, AReplyAfterTheTimeOutIsNeverTheAnswerToTheNextCall) {
  truth.command({"SET", key + "held", "another", "PX", "60000"});
  for (int i = 0; i < 4; ++i) {
    const std::string free = key + "free" + std::to_string(i);
    ASSERT_TRUE(proxied.ping().has_value());
    Faults late;
    late.down.delay = 500ms;
    proxy.set(late);
    Claim claim = claim_of(proxied.try_acquire(free, limited(100ms)));
    // Its "acquired" arrives while this is asked.
    const AcquireResult next = proxied.try_acquire(key + "held", limited(5s));
    EXPECT_EQ(next.outcome(), AcquireOutcome::busy) << describe(next);
    EXPECT_EQ(proxied.inspect(key + "held").value().held, true);
    proxy.heal();
    std::move(claim).withdraw(deadline_in(1s));
  }
}

TEST_P(Promise8OneDeadlinePerCall, ALateReplyToARenewalIsNotBelievedByTheNextCallEither) {
  Lease lease = lease_of(proxied.try_acquire(key, limited(100ms)));
  Faults late;
  late.down.delay = 500ms;
  proxy.set(late);
  EXPECT_EQ(lease.renew(), RenewOutcome::unknown);
  truth.command({"SET", key, "another", "PX", "60000"});
  EXPECT_EQ(lease.renew(), RenewOutcome::lost) << "it believed the first renewal's answer";
  EXPECT_EQ(lease.loss(), LossCause::taken);
}

TEST_P(Promise8OneDeadlinePerCall, PingInspectBreakAndFencedSetTakeAtMostASecond) {
  ASSERT_TRUE(client.ping().has_value());
  const Stopped stopped(server);
  const std::string where = address_of(server).path.empty() ? "127.0.0.1" : address_of(server).path;
  std::vector<std::jthread> calls;
  const auto expect_in_time = [&](const char* what, std::function<Error()> call) {
    calls.emplace_back([=] {
      const Stopwatch watch;
      const Error error = call();
      EXPECT_GE(watch.elapsed_ms(), 900ms) << what;
      EXPECT_LE(watch.elapsed_ms(), 1'200ms) << what;
      EXPECT_TRUE(contains(error.detail, where)) << error.detail;
    });
  };
  expect_in_time("ping", [&] { return client.ping().error(); });
  expect_in_time("inspect", [&] { return client.inspect(key).error(); });
  expect_in_time("break_lease", [&] { return client.break_lease(key).error(); });
  expect_in_time("fenced_set", [&] { return fenced_set(client, key, "v", FencingToken{1}).error(); });
}

TEST_P(Promise8OneDeadlinePerCall, AClosedPortIsToldAtOnce) {
  proxy.refuse();
  proxy.drop_all();
  Client nobody(proxy.url());
  const Stopwatch watch;
  EXPECT_EQ(error_of(nobody.try_acquire(key, limited(5s))).code, Errc::connect_failed);
  EXPECT_LE(watch.elapsed_ms(), 1s);
}

TEST_P(Promise8OneDeadlinePerCall, SlowButWithinTheLimitIsSuccess) {
  Faults slow;
  slow.up.delay = 10ms;
  slow.down.delay = 10ms;
  proxy.on_new(slow);
  Client fresh(proxy.url());
  const AcquireResult result = fresh.try_acquire(key, {.ttl = 600ms});
  EXPECT_EQ(result.outcome(), AcquireOutcome::acquired) << describe(result);
}

TEST_P(Promise8OneDeadlinePerCall, AnUncontendedAcquireDoesNotSleepFirst) {
  const auto time = [](auto take) {
    const Stopwatch watch;
    for (int i = 0; i < 100; ++i) lease_of(take()).release();
    return watch.elapsed_ms();
  };
  const Millis trying = time([&] { return client.try_acquire(key); });
  const Millis waiting = time([&] { return client.acquire(key, {.wait = 10s}); });
  EXPECT_LE(waiting, 3 * trying + 300ms) << "the plan's first interval alone is 10 ms";
}

}  // namespace
}  // namespace redlease
