// Keeping on a store of the program's own, and leases of very different terms on one Client.
#include <cstdlib>
#include <ctime>

#include "in_child.hpp"
#include "keeper_support.hpp"
#include "redlease/store/memory_store.hpp"
#include "tls_redis_server.hpp"

namespace redlease {
namespace {

using namespace testing_support;

TEST(AStoreOfTheProgramsOwn, ThatThrowsIsOneThatFailed) {
  const auto store = std::make_shared<SpyStore>(std::make_shared<MemoryStore>());
  const auto events = std::make_shared<KeeperEvents>();
  std::atomic<int> thrown{0};
  store->before = [&](std::string_view verb) {
    if (verb == "renew" && thrown < 2) {
      ++thrown;
      throw std::runtime_error("the store's own");
    }
  };
  Client client(store, {.observer = events});
  const LeaseGuard guard = guarded(client, "lease", kept(1s));
  EXPECT_TRUE(eventually([&] { return events->renewals > 1; }));
  EXPECT_EQ(thrown, 2);
  EXPECT_EQ(events->failed_renewals, 2);
}

class LeasesOfManyTerms : public OnItsOwnServer {};

// The first attempt to connect hangs, as one does whose first packet is dropped; it may take as long as the lease that
// is lost first can wait, not as the one that can wait longest.
TEST_F(LeasesOfManyTerms, OnOneClientDoNotWaitForAConnectionAsLongAsTheMostPatientOfThem) {
  FaultProxy proxy(server.tcp());
  unless_stalled(50ms, [&]() -> std::string {
    truth.flushall();
    Client client(proxy.url(), {.observer = events});
    const LeaseGuard patient = guarded(client, key + "patient", kept(30s));
    const int before = events->renewals;
    const LeaseGuard hasty = guarded(client, key + "hasty", kept(900ms));
    if (!eventually([&] { return events->renewals > before; })) return "never renewed";
    proxy.on_next(black_hole());
    proxy.drop_all();
    for (const Stopwatch watch; watch.elapsed_ms() < 2s;) {
      if (!hasty.held()) return "lost";
      pause_for(5ms);
    }
    return "";
  });
}

// A renewal fails, the next try is more than a second away.
TEST_F(LeasesOfManyTerms, CostNothingWhileTheyWaitForTheNextTryToReachTheServer) {
  FaultProxy proxy(server.tcp());
  Client client(proxy.url(), {.observer = events});
  Lease lease = taken(client, key, kept(4s));
  proxy.refuse();
  proxy.drop_all();
  const LeaseGuard guard(client, std::move(lease), kept(60s));  // is renewed at once
  ASSERT_TRUE(eventually([&] { return events->failed_renewals > 0; }));
  const auto begun = std::clock();
  pause_for(1s);
  EXPECT_LT(std::clock() - begun, CLOCKS_PER_SEC / 4) << "of processor time";
}

// What OpenSSL cleans up at exit is still in use then.
TEST(LeasesOverTls, ThatNobodyDestroysDoNotDisturbTheProcessesEnd) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer takes exception to threads and memory that are left behind on purpose";
#endif
  const TlsRedisServer server;
  for (int i = 0; i < 5; ++i) {
    expect_well_in_child([&] {
      static auto* client = new Client(server.url(), server.options());
      static auto* guards = new std::vector<LeaseGuard>;
      for (int n = 0; n < 20; ++n) guards->push_back(guarded(*client, "lease " + std::to_string(n), kept(60ms)));
      // Registered before OpenSSL's own at-exit function, so it runs behind that.
      pause_for(Millis(200 + i));
      std::exit(0);
    });
  }
}

}  // namespace
}  // namespace redlease
