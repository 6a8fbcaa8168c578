// Leases next to others that are lost, and leases where no server is.
#include "keeper_support.hpp"
#include "redlease/store/memory_store.hpp"
#include "support/fake_clock.hpp"

namespace redlease {
namespace {

using namespace testing_support;

TEST_F(KeptLease, IsKeptThoughOthersOfTheSameClientAreLost) {
  unless_stalled(100ms, [&]() -> std::string {
    truth.flushall();
    Client client(server.url_tcp(), {.observer = events});
    std::vector<LeaseGuard> guards;
    for (int i = 0; i < 20; ++i) guards.push_back(guarded(client, key + std::to_string(i), kept(600ms)));
    truth.del(key + "3");
    truth.command({"SET", key + "7", "another's", "PX", "60000"});
    truth.del(key + "11");
    truth.command({"HSET", key + "11", "not", "a lease"});
    pause_for(1'500ms);
    for (std::size_t i = 0; i < guards.size(); ++i) {
      const auto loss = guards[i].loss();
      const auto expected = i == 3              ? std::optional(LossCause::gone)
                            : i == 7 || i == 11 ? std::optional(LossCause::taken)
                                                : std::nullopt;
      if (loss != expected) return "lease " + std::to_string(i) + " was" + (loss ? "" : " not") + " lost";
    }
    return "";
  });
}

TEST(LeasesInMemory, AreKept) {
  const auto events = std::make_shared<KeeperEvents>();
  for (const char* url : {"memory:", "memory:shared"}) {
    unless_stalled(60ms, [&]() -> std::string {
      Client client(url, {.observer = events});
      LeaseGuard guard = guarded(client, "lease", kept(300ms));
      for (const Stopwatch watch; watch.elapsed_ms() < 1'500ms;) {
        if (!guard.held()) return "lost";
        pause_for(5ms);
      }
      EXPECT_EQ(client.try_acquire("lease").outcome(), AcquireOutcome::busy);
      EXPECT_EQ(guard.release(), ReleaseOutcome::released);
      return "";
    });
  }
}

TEST(LeasesInMemory, ThatAnotherBreaksAreLost) {
  Client client("memory:");
  Told told;
  LeaseOptions options = kept(600ms);
  options.on_lost = told.recorder();
  const LeaseGuard guard = guarded(client, "lease", options);
  ASSERT_TRUE(client.break_lease("lease").value());
  EXPECT_TRUE(eventually([&] { return told.times == 1; }));
  EXPECT_EQ(told.cause, LossCause::gone);
}

class LeasesOfAnotherClock : public ::testing::Test {
 protected:
  FakeClock clock;
  std::shared_ptr<KeeperEvents> events{std::make_shared<KeeperEvents>()};
  Client client{std::make_shared<MemoryStore>(clock), {.observer = events, .clock = &clock}};
};

TEST_F(LeasesOfAnotherClock, AreKeptAsItGoes) {
  Told told;
  LeaseOptions options = kept(30s);
  options.on_lost = told.recorder();
  const LeaseGuard guard = guarded(client, "lease", options);
  for (int i = 0; i < 40; ++i) {  // ten minutes
    const int before = events->renewals;
    const Deadline deadline = guard.deadline();
    clock.advance(15s);
    ASSERT_TRUE(eventually([&] { return events->renewals > before; }));
    EXPECT_GT(guard.deadline(), deadline);
    EXPECT_TRUE(guard.held());
  }
  EXPECT_EQ(told.times, 0);
}

TEST_F(LeasesOfAnotherClock, AreNotRenewedWhileItStandsStill) {
  const LeaseGuard guard = guarded(client, "lease", kept(30ms));
  pause_for(200ms);
  EXPECT_EQ(events->renewals, 0);
  EXPECT_TRUE(guard.held());
}

TEST_F(LeasesOfAnotherClock, AreLostWhereItLeaps) {
  Told told;
  LeaseOptions options = kept(30s);
  options.on_lost = told.recorder();
  LeaseGuard guard = guarded(client, "lease", options);
  const StopTime stop(guard.stop_token());
  clock.advance(31s);
  EXPECT_FALSE(guard.held()) << "at once";
  EXPECT_TRUE(eventually([&] { return told.times == 1 && stop.stopped(); }));
  EXPECT_EQ(told.cause, LossCause::deadline);
  EXPECT_EQ(events->renewals, 0) << "renewed behind its deadline";
  EXPECT_EQ(client.try_acquire("lease").outcome(), AcquireOutcome::acquired) << "the next";
}

}  // namespace
}  // namespace redlease
