// Destructors: what they send, how long they take, what they leave behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "in_child.hpp"
#include "redlease/redlease.hpp"
#include "support/monitor.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "support/sleepless.hpp"
#include "support/temp_dir.hpp"

namespace redlease {
inline namespace v0 {
namespace {

std::ptrdiff_t open_files() { return entries("/proc/self/fd"); }
std::ptrdiff_t threads() { return entries("/proc/self/task"); }

// The shortest of some tries: a busy machine makes one late, a fault makes them all late.
template <class Prepare>
Millis shortest_end(Prepare prepare, int tries = 3) {
  Millis shortest = Millis::max();
  for (int i = 0; i < tries; ++i) {
    auto doomed = std::make_optional(prepare());
    const Stopwatch watch;
    doomed.reset();
    shortest = std::min(shortest, watch.elapsed_ms());
  }
  return shortest;
}

class Lifetime : public ::testing::Test {
 protected:
  // ThreadSanitizer starts a thread of its own with the first, and the kernel forgets ours a little after it has ended.
  static void SetUpTestSuite() {
    std::thread([] {}).join();
    std::this_thread::sleep_for(Millis(50));
  }

  RedisServer server;
  RawClient raw{server.unix_socket()};
  Client client{server.url_tcp()};
};

TEST_F(Lifetime, LeavingTheScopeByAnExceptionGivesBackBeforeItIsCaught) {
  try {
    const LeaseGuard guard(client, "scope", lasting);
    const Lease lease = acquire(client, "bare");
    ASSERT_TRUE(raw.exists("scope") && raw.exists("bare"));
    throw std::runtime_error("the work failed");
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "the work failed");
    EXPECT_FALSE(raw.exists("scope") || raw.exists("bare"));
  }
}

TEST_F(Lifetime, TheWorksExceptionSurvivesALostLease) {
  try {
    const LeaseGuard guard(client, "scope", lasting);
    raw.set("scope", "another's");
    throw std::runtime_error("the work failed");
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "the work failed");
  }
  EXPECT_EQ(raw.get("scope"), "another's");
}

TEST_F(Lifetime, AssigningOverALeaseOrGuardReleasesTheFirst) {
  Lease lease = acquire(client, "first");
  lease = acquire(client, "second");
  EXPECT_FALSE(raw.exists("first"));
  EXPECT_TRUE(lease.held());
  LeaseGuard guard(client, "third", lasting);
  guard = LeaseGuard(client, "fourth", lasting);
  EXPECT_FALSE(raw.exists("third"));
  EXPECT_TRUE(guard.held());
}

TEST_F(Lifetime, LeasesOutliveTheirClientAndStillRenewAndRelease) {
  auto mortal = std::make_unique<Client>(server.url_unix());
  Lease lease = acquire(*mortal, "bare");
  auto guard = std::make_unique<LeaseGuard>(*mortal, "guarded", lasting);
  mortal.reset();
  EXPECT_EQ(lease.renew(), RenewOutcome::renewed) << lease.last_error().detail;
  EXPECT_EQ(lease.release(), ReleaseOutcome::released) << lease.last_error().detail;
  EXPECT_TRUE(guard->held());
  guard.reset();
  EXPECT_FALSE(raw.exists("guarded"));
  EXPECT_FALSE(raw.exists("bare"));
}

TEST_F(Lifetime, EndsWithinOneOpTimeoutWhenTheServerStandsStill) {
  constexpr Millis op_timeout{200};
  constexpr Millis bound = op_timeout + Millis(50);
  const LeaseOptions brisk{.ttl = Millis(600'000), .op_timeout = op_timeout};
  int name = 0;
  const auto then_stop = [&](auto doomed) {
    server.stop();
    return doomed;
  };
  const auto shortest = [&](auto make) {
    return shortest_end([&] {
      if (name++ > 0) server.cont();
      return then_stop(make("doomed:" + std::to_string(name)));
    });
  };
  EXPECT_LE(shortest([&](const std::string& key) { return acquire(client, key, brisk); }), bound);
  EXPECT_LE(shortest([&](const std::string& key) { return LeaseGuard(client, key, brisk); }), bound);
  server.cont();
  // A Claim: its withdrawal is sent and not waited for.
  Client doubtful(server.url_unix());
  (void)acquire(doubtful, "so that it is connected");
  server.stop();
  auto claim = doubtful.try_acquire("doubtful", brisk).claim();
  ASSERT_TRUE(claim);
  EXPECT_LE(shortest_end([&] { return *std::move(claim); }, 1), bound);
  server.cont();
}

TEST_F(Lifetime, OfALeaseKnownToBeLostEndsAtOnceAndSendsNothing) {
  const auto known_to_be = [&](const std::string& fate) {
    Lease lease = acquire(client, fate);
    if (fate == "gone") raw.del(fate);
    if (fate == "taken") raw.set(fate, "another's");
    if (fate == "released") (void)lease.release();
    if (fate == "abandoned") lease.abandon();
    EXPECT_EQ(to_string(lease.renew()), "lost");
    return lease;
  };
  Monitor monitor(server.unix_socket());
  for (const std::string fate : {"gone", "taken", "released", "abandoned"}) {
    SCOPED_TRACE(fate);
    EXPECT_LT(shortest_end([&] {
                raw.del(fate);
                Lease lease = known_to_be(fate);
                monitor.clear();
                return lease;
              }),
              Millis(50));
    EXPECT_TRUE(monitor.lines().empty()) << monitor.lines()[0].line;
  }
}

TEST_F(Lifetime, ThousandsOfClientsLeasesAndGuardsLeaveNoDescriptorAndNoThread) {
  const auto cycle = [&](int i) {
    Client mortal(i % 2 == 0 ? server.url_tcp() : server.url_unix());
    const Lease lease = acquire(mortal, "bare");
    const LeaseGuard guard(mortal, "guarded", lasting);
    ASSERT_TRUE(guard.held() && lease.held());
  };
  const auto tasks = threads();
  cycle(0);
  const auto files = open_files();
  for (int i = 0; i < 2'000 && !HasFatalFailure(); ++i) {
    cycle(i);
    // Eventually: a thread is joined a little before the kernel has forgotten it.
    ASSERT_TRUE(eventually([&] { return threads() == tasks; })) << "a thread was left after " << i << " cycles";
  }
  EXPECT_EQ(open_files(), files);
}

TEST_F(Lifetime, HoldingAndRenewingByHandNeedNoThreadAndNoneIsLeftBehindAWait) {
  const auto before = threads();
  Lease lease = acquire(client, "held");
  LeaseOptions waiting = lasting;
  waiting.wait = Millis(100);
  EXPECT_NE(client.acquire("held", waiting).outcome(), AcquireOutcome::acquired);
  EXPECT_EQ(lease.renew(), RenewOutcome::renewed);
  // The waiter's inbox is kept for half a second, in case that somebody else waits.
  EXPECT_TRUE(eventually([&] { return threads() == before; }));
}

TEST_F(Lifetime, KeepingNeedsOneThreadHoweverManyAreKeptAndNoneBehindTheLast) {
  const auto before = threads();
  {
    std::vector<LeaseGuard> guards;
    for (int i = 0; i < 50; ++i) guards.emplace_back(client, "guarded" + std::to_string(i), lasting);
    EXPECT_EQ(threads(), before + 1);
  }
  EXPECT_TRUE(eventually([&] { return threads() == before; }));
}

TEST_F(Lifetime, FailedCallsLeaveNoDescriptor) {
  const LeaseOptions brisk{.ttl = Millis(600'000), .op_timeout = Millis(20)};
  const auto before = open_files();
  {
    Client mortal(server.url_tcp());
    ASSERT_TRUE(mortal.ping().has_value());
    server.stop();
    for (int i = 0; i < 100; ++i) (void)mortal.try_acquire("doubtful", brisk);
    server.cont();
    // What is still owed is kept, and not for ever.
    ASSERT_TRUE(eventually([&] { return mortal.ping().has_value() && open_files() <= before + 2; }))
        << open_files() - before << " descriptors";
  }
  EXPECT_EQ(open_files(), before);
}

}  // namespace
}  // namespace v0
}  // namespace redlease
