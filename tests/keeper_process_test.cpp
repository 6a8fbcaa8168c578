// Kept leases in processes that fork and end.
#include <unistd.h>

#include "in_child.hpp"
#include "keeper_support.hpp"
#include "support/shared_page.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class KeptInAProcess : public OnItsOwnServer {
 protected:
  // What a process that ends by exit() takes for it.
  Millis exit_of(const std::function<void()>& prepare) {
    SharedPage page;
    return best_of_three(1s, [&] {
      expect_well_in_child([&] {
        prepare();
        page.counter() = LeaseClock::now().time_since_epoch().count();
        std::exit(0);
      });
      const Deadline left(LeaseClock::duration(page.counter().load()));
      return std::chrono::duration_cast<Millis>(LeaseClock::now() - left);
    });
  }
};

TEST_F(KeptInAProcess, DoesNotKeepItFromEndingThoughItIsInAStatic) {
  const Millis took = exit_of([&] {
    static Client client(server.url_tcp());
    static LeaseGuard guard = guarded(client, key, kept(600ms));
    pause_for(300ms);
  });
  EXPECT_LE(took, 1'200ms);
  EXPECT_FALSE(truth.exists(key));
}

TEST_F(KeptInAProcess, DoesNotKeepItFromEndingThoughItsClientGoesFirst) {
  const Millis took = exit_of([&] {
    static std::optional<LeaseGuard> guard;
    static Client client(server.url_tcp());
    guard.emplace(guarded(client, key, kept(600ms)));
    pause_for(300ms);
  });
  EXPECT_LE(took, 1'200ms);
  EXPECT_FALSE(truth.exists(key));
}

TEST_F(KeptInAProcess, DoesNotKeepItFromEndingThoughTheServerStandsStill) {
  const Millis took = exit_of([&] {
    static Client client(server.url_tcp());
    static LeaseGuard guard = guarded(client, key, limited(200ms, 3s));
    pause_for(300ms);
    ::kill(server.pid(), SIGSTOP);
  });
  server.cont();
  EXPECT_LE(took, 1'200ms);
}

TEST_F(KeptInAProcess, DoesNotKeepItFromEndingThoughNobodyEverDestroysIt) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer takes exception to threads and memory that are left behind on purpose";
#endif
  const Millis took = exit_of([&] {
    auto* client = new Client(server.url_tcp());
    static auto* guard = new LeaseGuard(guarded(*client, key, kept(300ms)));
    (void)guard;
    pause_for(250ms);
  });
  EXPECT_LE(took, 1'200ms);
  EXPECT_TRUE(eventually([&] { return !truth.exists(key); })) << "who renews it?";
}

TEST_F(KeptInAProcess, IsTheParentsAloneAndTheChildsCopiesAreInert) {
  Client client(server.url_tcp(), {.observer = events});
  Told told;
  LeaseOptions options = kept(3s);
  options.on_lost = told.recorder();
  std::optional<LeaseGuard> guard(guarded(client, key, options));
  ASSERT_TRUE(eventually([&] { return events->renewals > 0; }));
  SharedPage page;
  Children child(1, [&](int) {
    require(!guard->held() && !guard->loss(), "the child holds it, or lost it");
    require(!guard->stop_token().stop_possible(), "the child has a token that may stop");
    require(guard->release() == ReleaseOutcome::not_held, "the child released it");
    page.counter(0) = 1;
    require(eventually([&] { return page.counter(1) == 1; }, 30s), "nobody goes on");
    require(told.times == 0, "the child was told of a loss");
    guard.reset();
  });
  ASSERT_TRUE(eventually([&] { return page.counter(0) == 1; }, 20s));
  const int before = events->renewals;
  EXPECT_TRUE(eventually([&] { return events->renewals > before + 1; })) << "the fork ended the parent's renewals";
  page.counter(1) = 1;
  EXPECT_EQ(child.wait(), std::vector<int>{0});
  EXPECT_TRUE(guard->held());
  EXPECT_EQ(truth.get(key), guard->token().str());
  EXPECT_EQ(told.times, 0);
}

// Forked amid renewals, time and again.
TEST_F(KeptInAProcess, OfAClientFromBeforeTheForkIsKeptInTheChild) {
  Client client(server.url_tcp(), {.observer = events});
  unless_stalled(100ms, [&]() -> std::string {
    truth.flushall();
    const LeaseGuard parents = guarded(client, key, kept(600ms));
    SharedPage page;
    for (int i = 0; i < 3; ++i) {
      const auto statuses = run_children(1, [&](int) {
        const LeaseGuard childs = guarded(client, key + "of child", kept(600ms));
        for (const Stopwatch watch; watch.elapsed_ms() < 1'500ms;) {
          if (!childs.held()) ++page.counter(0);
          pause_for(5ms);
        }
        require(!parents.held(), "the child holds its parent's");
      });
      if (statuses != std::vector<int>{0}) return "the child failed";
      if (page.counter(0) != 0) return "lost in the child";
      if (!parents.held()) return "lost in the parent";
      EXPECT_FALSE(truth.exists(key + "of child"));
    }
    return "";
  });
}

}  // namespace
}  // namespace redlease
