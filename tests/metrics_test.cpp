// What a Metrics counts, over real runs and event by event.
#include "redlease/metrics.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include "promise_support.hpp"
#include "redlease/store/memory_store.hpp"
#include "support/children.hpp"
#include "support/fake_clock.hpp"

namespace redlease {
namespace {

using namespace testing_support;

std::uint64_t up_to(const DurationHistogram& all, std::chrono::nanoseconds le) {
  for (const auto& bucket : all.buckets) {
    if (bucket.le == le) return bucket.count;
  }
  throw std::runtime_error("no bucket of that bound");
}

const LeaseOptions lasting{.ttl = 10min, .op_timeout = 20s};

class MetricsOfARun : public ::testing::Test {
 protected:
  const std::shared_ptr<Metrics> metrics{std::make_shared<Metrics>()};
};

TEST_F(MetricsOfARun, InMemoryAreExactToTheNanosecond) {
  FakeClock clock;
  Client client(std::make_shared<MemoryStore>(clock), {.drift = 0, .observer = metrics, .clock = &clock});
  std::vector<Lease> five;
  for (const char* name : {"a", "b", "c", "d", "e"}) five.push_back(lease_of(client.try_acquire(name)));
  EXPECT_EQ(metrics->snapshot().held, 5U);
  busy_of(client.try_acquire("a"));
  busy_of(client.acquire("a"));  // tries once
  for (int i = 0; i < 3; ++i) {
    clock.advance(2s);
    EXPECT_EQ(five[0].renew(), RenewOutcome::renewed);
  }
  EXPECT_TRUE(client.break_lease("b").value());
  EXPECT_EQ(five[1].renew(), RenewOutcome::lost);
  five[1].release();  // nothing more to say
  EXPECT_EQ(five[2].release(), ReleaseOutcome::released);
  EXPECT_TRUE(client.break_lease("d").value());
  EXPECT_EQ(five[3].release(), ReleaseOutcome::not_held);
  EXPECT_EQ(metrics->snapshot().held, 2U);
  clock.advance(1h);
  EXPECT_EQ(five[4].release(), ReleaseOutcome::not_held) << "its deadline has passed";
  five.clear();

  const MetricsSnapshot s = metrics->snapshot();
  EXPECT_EQ(s.acquired, 5U);
  EXPECT_EQ(s.busy, 2U);
  EXPECT_EQ(s.unknown + s.unavailable + s.unknown_outcomes, 0U);
  EXPECT_EQ(s.acquire_time.count, 7U);
  EXPECT_EQ(s.acquire_time.sum, 0ns);
  EXPECT_EQ(s.waiting, 0U);
  EXPECT_EQ(s.wait_time.count, 1U);
  EXPECT_EQ(s.wait_attempts, 1U);
  EXPECT_EQ(s.held, 0U);
  EXPECT_EQ(s.renewed, 3U);
  EXPECT_EQ(s.renew_failed, 0U);
  EXPECT_EQ(s.renew_slack.count, 3U);
  EXPECT_EQ(s.renew_slack.sum, 3 * (30s - 2ms - 2s));
  EXPECT_EQ(s.lost_gone, 1U);
  EXPECT_EQ(s.lost_by_deadline, 2U) << "a's and e's";
  EXPECT_EQ(s.lost_taken + s.lost_by_max_hold, 0U);
  EXPECT_EQ(s.released, 1U);
  EXPECT_EQ(s.release_failed, 3U) << "d, and a and e behind their losses";
  EXPECT_EQ(s.hold_time.count, 5U);
  EXPECT_EQ(s.hold_time.sum, 6s + 6s + 6s + (30s - 2ms) + (36s - 2ms));
}

TEST_F(MetricsOfARun, OverAServerMatchWhatWasDone) {
  const RedisServer server;
  FaultProxy proxy(server.tcp());
  RawClient truth(server.tcp());
  Client client(proxy.url(), {.observer = metrics});
  std::vector<Lease> five;
  for (const char* name : {"a", "b", "c", "d", "e"}) five.push_back(lease_of(client.try_acquire(name, lasting)));
  for (int i = 0; i < 2; ++i) busy_of(client.try_acquire("a", lasting));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(five[0].renew(), RenewOutcome::renewed);
  truth.del("b");
  EXPECT_EQ(five[1].renew(), RenewOutcome::lost);
  truth.command({"SET", "c", "another"});
  EXPECT_EQ(five[2].release(), ReleaseOutcome::not_held);
  EXPECT_EQ(five[3].release(), ReleaseOutcome::released);
  Lease adopted = client.adopt("a", five[0].token(), lasting);
  EXPECT_EQ(adopted.renew(), RenewOutcome::renewed);
  EXPECT_EQ(metrics->snapshot().held, 3U);
  EXPECT_EQ(adopted.release(), ReleaseOutcome::released);
  EXPECT_EQ(client.adopt("z", five[0].token(), lasting).release(), ReleaseOutcome::not_held) << "it never was ours";
  EXPECT_EQ(metrics->snapshot().held, 2U);
  EXPECT_EQ(metrics->snapshot().connected, 1U);

  proxy.withhold_replies();
  claim_of(client.try_acquire("f", limited(200ms))).abandon();
  proxy.refuse();
  proxy.drop_all();
  error_of(client.try_acquire("g", lasting));
  EXPECT_NE(five[4].renew(), RenewOutcome::renewed);
  EXPECT_NE(five[4].release(), ReleaseOutcome::released);

  const MetricsSnapshot s = metrics->snapshot();
  EXPECT_EQ(s.acquired, 5U);
  EXPECT_EQ(s.busy, 2U);
  EXPECT_EQ(s.unknown, 1U);
  EXPECT_EQ(s.unavailable, 1U);
  EXPECT_EQ(s.unknown_outcomes, 1U);
  EXPECT_EQ(s.acquire_time.count, 9U);
  EXPECT_GE(s.acquire_time.count - up_to(s.acquire_time, 100ms), 1U) << "the one that timed out took 200 ms";
  EXPECT_EQ(s.held, 1U);
  EXPECT_EQ(s.renewed, 4U);
  EXPECT_EQ(s.renew_slack.count, 3U) << "an adopted lease's first renewal has no old deadline";
  EXPECT_EQ(s.renew_failed, 1U);
  EXPECT_EQ(s.lost_gone, 1U);
  EXPECT_EQ(s.released, 2U);
  EXPECT_EQ(s.release_failed, 3U);
  EXPECT_EQ(s.hold_time.count, 5U);
  EXPECT_EQ(s.connected, 1U);
  EXPECT_GE(s.connect_failed, 3U);
}

TEST_F(MetricsOfARun, AWaitIsSeenWhileItGoesOnAndEndsWhenItIsStopped) {
  Client client("memory:", {.observer = metrics});
  const Lease holder = lease_of(client.try_acquire("a"));
  std::jthread waiter([&](const std::stop_token& stop) {
    EXPECT_EQ(error_of(client.acquire("a", {.wait = forever}, stop)).code, Errc::cancelled);
  });
  EXPECT_TRUE(eventually([&] { return metrics->snapshot().waiting == 1 && metrics->snapshot().busy >= 1; }));
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(metrics->snapshot().wait_time.count, 0U);
  waiter.request_stop();
  waiter.join();
  const MetricsSnapshot s = metrics->snapshot();
  EXPECT_EQ(s.waiting, 0U);
  EXPECT_EQ(s.wait_time.count, 1U);
  EXPECT_EQ(s.wait_attempts, s.busy);
  EXPECT_GE(s.wait_time.sum, 20ms);
}

TEST_F(MetricsOfARun, AWaitEndsWithAnExceptionTooAndNeverBeginsWithFlawedOptions) {
  const auto store = std::make_shared<SpyStore>(std::make_shared<MemoryStore>());
  store->before = [](std::string_view) { throw std::bad_alloc(); };
  Client client(store, {.observer = metrics});
  EXPECT_THROW((void)client.acquire("a"), std::bad_alloc);
  EXPECT_EQ(metrics->snapshot().waiting, 0U);
  EXPECT_EQ(metrics->snapshot().wait_time.count, 1U);
  EXPECT_THROW((void)client.acquire("a", {.ttl = 0ms}), std::invalid_argument);
  EXPECT_EQ(metrics->snapshot().wait_time.count, 1U);
}

TEST_F(MetricsOfARun, AForkedChildStartsFromZero) {
  Client client("memory:", {.observer = metrics});
  const Lease parents = lease_of(client.try_acquire("a"));
  const auto statuses = run_children(1, [&](int) {
    if (metrics->snapshot().held != 0) throw std::runtime_error("the child holds its parent's lease");
    const Lease own = lease_of(client.try_acquire("a"));
    if (metrics->snapshot().held != 1) throw std::runtime_error("the child does not hold its own lease");
  });
  EXPECT_EQ(statuses, std::vector<int>{0});
  EXPECT_EQ(metrics->snapshot().acquired, 1U);
}

TEST(MetricsEvents, ABoundBelongsToItsBucket) {
  Metrics metrics;
  const DurationHistogram none = metrics.snapshot().acquire_time;
  ASSERT_EQ(none.buckets.front().le, 100us);
  ASSERT_GE(none.buckets.back().le, 60s);
  for (const auto& bucket : none.buckets) {
    const auto before = metrics.snapshot().acquire_time;
    for (const auto elapsed : {bucket.le - 1ns, bucket.le, bucket.le + 1ns}) metrics.busy({.elapsed = elapsed});
    const auto after = metrics.snapshot().acquire_time;
    EXPECT_EQ(up_to(after, bucket.le) - up_to(before, bucket.le), 2U) << bucket.le.count();
    EXPECT_EQ(after.count - before.count, 3U);
    EXPECT_EQ(after.sum - before.sum, 3 * bucket.le);
  }
  metrics.busy({.elapsed = 0ns});
  metrics.busy({.elapsed = -5s});
  EXPECT_EQ(metrics.snapshot().acquire_time.buckets.front().count, 4U) << "less than nothing counts as nothing";
}

TEST(MetricsEvents, EachHasItsNumber) {
  Metrics metrics;
  const Error doubt{Errc::unknown_outcome, {}}, refused{Errc::connect_failed, {}};
  for (const LossCause cause : {LossCause::deadline, LossCause::gone, LossCause::gone, LossCause::taken,
                                LossCause::taken, LossCause::taken, LossCause::max_hold}) {
    metrics.lost({.held = 1s, .loss = cause});
  }
  metrics.unknown({.error = &doubt});
  metrics.renew_failed({.error = &doubt});
  metrics.renew_failed({.error = &refused});
  metrics.release_failed({.held = 1s, .error = &doubt});
  metrics.orphan_withdrawn({});
  metrics.orphan_withdrawn({.error = &refused});
  metrics.orphan_withdrawn({.error = &refused});
  metrics.connected({});
  metrics.connected({.error = &refused});
  metrics.unheard({.error = &refused});
  metrics.stalled({.elapsed = 3s});
  metrics.stalled({.elapsed = 1500ms});
  const MetricsSnapshot s = metrics.snapshot();
  EXPECT_EQ(s.lost_by_deadline, 1U);
  EXPECT_EQ(s.lost_gone, 2U);
  EXPECT_EQ(s.lost_taken, 3U);
  EXPECT_EQ(s.lost_by_max_hold, 1U);
  EXPECT_EQ(s.unknown_outcomes, 3U);
  EXPECT_EQ(s.renew_failed, 2U);
  EXPECT_EQ(s.orphans_withdrawn, 1U);
  EXPECT_EQ(s.orphans_dropped, 2U);
  EXPECT_EQ(s.connected, 1U);
  EXPECT_EQ(s.connect_failed, 1U);
  EXPECT_EQ(s.unheard, 1U);
  EXPECT_EQ(s.stalls, 2U);
  EXPECT_EQ(s.stalled_time, 4500ms);
}

TEST(MetricsEvents, ALeaseEndsOnceWhateverIsToldBehindItsLoss) {
  Metrics metrics;
  for (int i = 0; i < 6; ++i) metrics.acquired({.elapsed = 1ms});
  metrics.lost({.held = 1s, .loss = LossCause::deadline});
  metrics.released({.elapsed = 1ms, .held = 1s, .loss = LossCause::deadline});
  metrics.release_failed({.elapsed = 1ms, .held = 1s, .loss = LossCause::max_hold});
  metrics.released({.elapsed = 1ms});  // adopted, never renewed
  EXPECT_EQ(metrics.snapshot().held, 5U);
  EXPECT_EQ(metrics.snapshot().hold_time.count, 1U);
  metrics.abandoned({.held = 1s});
  metrics.release_failed({.elapsed = 1ms, .held = 1s, .loss = LossCause::taken});
  EXPECT_EQ(metrics.snapshot().held, 3U);
  EXPECT_EQ(metrics.snapshot().hold_time.count, 3U);
}

TEST(MetricsEvents, AGaugeStaysAtZeroAndForgetsEndsWithoutABeginning) {
  Metrics metrics;
  for (int i = 0; i < 3; ++i) {
    metrics.lost({.held = 1s, .loss = LossCause::gone});
    metrics.waited({.elapsed = 1s});
  }
  EXPECT_EQ(metrics.snapshot().held, 0U);
  EXPECT_EQ(metrics.snapshot().waiting, 0U);
  metrics.acquired({});
  metrics.waiting({});
  EXPECT_EQ(metrics.snapshot().held, 1U);
  EXPECT_EQ(metrics.snapshot().waiting, 1U);
}

TEST(MetricsEvents, OfEightThreadsNoneIsLostAndEveryReadingAgreesWithItself) {
  Metrics metrics;
  constexpr std::uint64_t rounds = 20'000, threads = 8;
  std::atomic<std::uint64_t> working{threads};
  {
    std::vector<std::jthread> crew;
    for (std::uint64_t i = 0; i < threads; ++i) {
      crew.emplace_back([&] {
        for (std::uint64_t round = 0; round < rounds; ++round) {
          metrics.waiting({});
          metrics.acquired({.elapsed = 1ms});
          metrics.waited({.elapsed = 2ms, .attempts = 3});
          metrics.renewed({.slack = 1s});
          metrics.released({.elapsed = 1ms, .held = 1s});
        }
        --working;
      });
    }
    while (working > 0) {
      const MetricsSnapshot s = metrics.snapshot();
      EXPECT_LE(s.held, threads);
      EXPECT_LE(s.waiting, threads);
      EXPECT_EQ(s.acquire_time.buckets.back().count, s.acquire_time.count);
      EXPECT_GE(s.acquire_time.sum, s.acquire_time.count * 1ms);
    }
  }
  const MetricsSnapshot s = metrics.snapshot();
  EXPECT_EQ(s.acquired, threads * rounds);
  EXPECT_EQ(s.acquire_time.count, threads * rounds);
  EXPECT_EQ(s.acquire_time.sum, threads * rounds * 1ms);
  EXPECT_EQ(s.wait_attempts, 3 * threads * rounds);
  EXPECT_EQ(s.renew_slack.sum, threads * rounds * 1s);
  EXPECT_EQ(s.hold_time.count, threads * rounds);
  EXPECT_EQ(s.released, threads * rounds);
  EXPECT_EQ(s.held, 0U);
  EXPECT_EQ(s.waiting, 0U);
}

}  // namespace
}  // namespace redlease
