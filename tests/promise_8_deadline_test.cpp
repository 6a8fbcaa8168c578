// Promise 8: every call has one absolute deadline, and every call that can wait obeys a stop token.
#include <thread>

#include "promise_support.hpp"
#include "support/foreground.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class Promise8OneDeadlinePerCall : public OverBothWays {
 protected:
  Promise8OneDeadlinePerCall() : proxied(std::make_shared<Foreground>(proxy.url())) {}  // the newest connection is its

  // Each verb in turn, on a connection that stands and that this does harm to.
  template <class Harm>
  void expect_each_call_within(Millis most, Harm harm) {
    const LeaseOptions options = limited(100ms);
    const auto time = [&](const char* what, auto call) {
      const Millis best = best_of_three(most, [&] {
        proxy.heal();
        Lease lease = taken(proxied, key, options);
        harm();
        const Stopwatch watch;
        call(lease);
        const Millis elapsed = watch.elapsed_ms();
        proxy.heal();
        return elapsed;
      });
      EXPECT_LE(best, most) << what;
    };
    const std::string free = key + "free";
    time("try_acquire",
         [&](const Lease&) { EXPECT_EQ(proxied.try_acquire(free, options).outcome(), AcquireOutcome::unknown); });
    time("acquire",
         [&](const Lease&) { EXPECT_EQ(proxied.acquire(free, options).outcome(), AcquireOutcome::unknown); });
    time("renew", [&](Lease& lease) { EXPECT_NE(lease.renew(), RenewOutcome::lost); });
    time("release", [&](Lease& lease) { EXPECT_NE(lease.release(), ReleaseOutcome::not_held); });
  }

  FaultProxy proxy{address_of(server), front()};
  Client proxied;
};
INSTANTIATE_TEST_SUITE_P(Over, Promise8OneDeadlinePerCall, both_ways, name_of);

TEST_P(Promise8OneDeadlinePerCall, ADribblingServerStretchesNothing) {
  expect_each_call_within(150ms, [&] {
    Faults dribbling;
    dribbling.down.dribble = 1;
    dribbling.down.every = 40ms;  // ":1" and a line end takes longer than the limit
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
  const Millis took = best_of_three(150ms, [&] {
    Client fresh(proxy.url());
    const Stopwatch watch;
    const Error error = error_of(fresh.try_acquire(key, limited(100ms)));
    const Millis elapsed = watch.elapsed_ms();
    EXPECT_EQ(error.code, Errc::timed_out);
    expect_for_people(error, key, proxy.address().path.empty() ? "127.0.0.1" : proxy.address().path);
    return elapsed;
  });
  EXPECT_LE(took, 150ms);
}

TEST_P(Promise8OneDeadlinePerCall, ADribblingConnectionThatIsFastEnoughStillServes) {
  Faults dribbling;
  dribbling.down.dribble = 3;
  dribbling.down.every = 1ms;
  proxy.on_new(dribbling);
  Client fresh(proxy.url());
  EXPECT_EQ(taken(fresh, key, limited(5s)).release(), ReleaseOutcome::released);
}

TEST_P(Promise8OneDeadlinePerCall, AReplyAfterTheTimeOutIsNeverTheAnswerToTheNextCall) {
  truth.command({"SET", key + "held", "another", "PX", "60000"});
  for (int i = 0; i < 4; ++i) {
    const std::string free = key + "free" + std::to_string(i);
    ASSERT_TRUE(reachable(proxied));
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
  Lease lease = taken(proxied, key, limited(100ms));
  Faults late;
  late.down.delay = 500ms;
  proxy.set(late);
  EXPECT_EQ(lease.renew(), RenewOutcome::unknown);
  truth.command({"SET", key, "another", "PX", "60000"});
  EXPECT_EQ(lease.renew(), RenewOutcome::lost) << "it believed the first renewal's answer";
  EXPECT_EQ(lease.loss(), LossCause::taken);
}

TEST_P(Promise8OneDeadlinePerCall, PingInspectBreakAndFencedSetTakeAtMostASecond) {
  ASSERT_TRUE(reachable(client));
  const Stopped stopped(server);
  const std::string where = address_of(server).path.empty() ? "127.0.0.1" : address_of(server).path;
  std::vector<std::jthread> calls;
  const auto expect_in_time = [&](const char* what, std::function<Error()> call) {
    calls.emplace_back([=] {
      const Stopwatch watch;
      const Error error = call();
      EXPECT_GE(watch.elapsed_ms(), 900ms) << what;
      EXPECT_LE(watch.elapsed_ms(), 3s) << what;
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
  slow.up.delay = 50ms;
  slow.down.delay = 50ms;
  proxy.on_new(slow);
  Client fresh(proxy.url());
  const AcquireResult result = fresh.try_acquire(key, limited(10s));
  EXPECT_EQ(result.outcome(), AcquireOutcome::acquired) << describe(result);
}

TEST_P(Promise8OneDeadlinePerCall, AnUncontendedAcquireDoesNotSleepFirst) {
  const auto time = [](auto take) {
    const Stopwatch watch;
    for (int i = 0; i < 50; ++i) lease_of(take()).release();
    return watch.elapsed_ms();
  };
  const Millis trying = time([&] { return client.try_acquire(key, limited(10s)); });
  const Millis enough = trying + 400ms;
  LeaseOptions patient = limited(10s);
  patient.wait = 10s;
  const Millis waiting = best_of_three(enough, [&] { return time([&] { return client.acquire(key, patient); }); });
  EXPECT_LE(waiting, enough) << "to sleep for the plan's first interval alone would take 500 ms more";
}

}  // namespace
}  // namespace redlease
