// What nobody wants any more is withdrawn in the background.
#include "keeper_support.hpp"
#include "redlease/store/memory_store.hpp"
#include "service/orphans.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class OrphanedLease : public OnItsOwnServer {
 protected:
  OrphanedLease() {
    // So that the server knows the scripts, and a request whose answer is withheld was carried out.
    Client first(server.url_unix());
    Lease lease = taken(first, "first");
    (void)lease.release();
  }

  // Gone in a moment, told once, and no longer in anybody's way.
  void expect_withdrawn(int times = 1) {
    EXPECT_TRUE(eventually([&] { return !truth.exists(key); })) << "it stands";
    EXPECT_TRUE(eventually([&] { return events->withdrawn == times; })) << "told " << events->withdrawn << " times";
    (void)truth.command({"SET", key, "another's", "PX", "60000"});
    pause_for(400ms);
    EXPECT_EQ(truth.get(key), "another's");
    EXPECT_EQ(events->withdrawn, times);
    EXPECT_EQ(events->given_up, 0);
  }
};

TEST_F(OrphanedLease, OfAnUnansweredAcquireIsWithdrawnOnceThatIsDropped) {
  FaultProxy proxy(server.tcp());
  Client client(proxy.url(), {.observer = events});
  {
    const Claim claim = unanswered(client, proxy, key);
    ASSERT_TRUE(eventually([&] { return truth.exists(key); }));
    pause_for(300ms);
    EXPECT_TRUE(truth.exists(key)) << "withdrawn though it is still claimed";
  }
  const Stopwatch watch;
  EXPECT_TRUE(eventually([&] { return !truth.exists(key); }));
  EXPECT_LT(watch.elapsed_ms(), 2s);
  proxy.heal();
  expect_withdrawn();
}

TEST_F(OrphanedLease, WhoseConnectionBrokeIsWithdrawnOverAnother) {
  FaultProxy proxy(server.tcp());
  Client client(proxy.url(), {.observer = events});
  std::optional<Claim> claim = unanswered(client, proxy, key);
  proxy.drop_all();
  ASSERT_TRUE(truth.exists(key));
  claim.reset();
  expect_withdrawn();
}

TEST_F(OrphanedLease, WhoseRequestIsCarriedOutLateIsWithdrawnAllTheSame) {
  Client client(server.url_tcp(), {.observer = events});
  ASSERT_TRUE(reachable(client));
  {
    const Stopped stopped(server);
    std::optional<Claim> claim = claim_of(client.try_acquire(key, limited(200ms)));
    claim.reset();
    pause_for(300ms);  // the request waits in the server's buffer, its connection is closed
  }
  expect_withdrawn();
}

TEST_F(OrphanedLease, OfACancelledAcquireIsWithdrawn) {
  FaultProxy proxy(server.tcp());
  Client client(proxy.url(), {.observer = events});
  ASSERT_TRUE(reachable(client));
  proxy.withhold_replies();
  std::stop_source cancel;
  const std::jthread canceller([&] {
    (void)eventually([&] { return RawClient(server.unix_socket()).exists(key); });
    cancel.request_stop();
  });
  const LeaseOptions options{.ttl = 30s, .wait = 20s, .op_timeout = 1s};
  { const Claim claim = claim_of(client.acquire(key, options, cancel.get_token())); }
  proxy.heal();
  expect_withdrawn();
}

TEST_F(OrphanedLease, ThatAGuardCouldNotBeSureOfIsWithdrawn) {
  FaultProxy proxy(server.tcp());
  Client client(proxy.url(), {.observer = events});
  ASSERT_TRUE(reachable(client));
  proxy.withhold_replies();
  EXPECT_THROW(const LeaseGuard guard(client, key, limited(300ms)), AcquireError);
  proxy.heal();
  expect_withdrawn();
}

TEST_F(OrphanedLease, ThatTheServerWouldNotReleaseIsReleasedWhenItWill) {
  Client client(server.url_tcp(), {.observer = events});
  LeaseGuard guard = guarded(client, key, kept(30s));
  truth.config_set("min-replicas-to-write", "1");
  EXPECT_NE(guard.release(), ReleaseOutcome::released);
  EXPECT_FALSE(guard.held());
  pause_for(300ms);
  EXPECT_TRUE(truth.exists(key));
  EXPECT_EQ(events->withdrawn, 0);
  truth.config_set("min-replicas-to-write", "0");
  expect_withdrawn();
}

TEST_F(OrphanedLease, WhoseReleaseCouldNotBeSentIsReleasedWhenTheServerIsBack) {
  FaultProxy proxy(server.tcp());
  Client client(proxy.url(), {.observer = events});
  std::optional<LeaseGuard> guard(guarded(client, key, limited(300ms)));
  proxy.refuse();
  proxy.drop_all();
  guard.reset();
  pause_for(300ms);
  EXPECT_TRUE(truth.exists(key));
  proxy.refuse(false);
  expect_withdrawn();
}

TEST_F(OrphanedLease, WhoseReleaseWasNotAnsweredIsMadeSureOf) {
  FaultProxy proxy(server.tcp());
  Client client(proxy.url(), {.observer = events});
  Lease lease = taken(client, key, limited(300ms));
  proxy.withhold_replies();
  EXPECT_EQ(lease.release(), ReleaseOutcome::unknown);
  expect_withdrawn();
}

TEST_F(OrphanedLease, OfAServerThatNeverComesBackIsGivenUpWithItsTtl) {
  FaultProxy proxy(server.tcp());
  Client client(proxy.url(), {.observer = events});
  std::optional<Claim> claim;
  ASSERT_TRUE(reachable(client));
  proxy.withhold_replies();
  claim = claim_of(client.try_acquire(key, limited(100ms, 500ms)));
  proxy.refuse();
  proxy.drop_all();
  claim.reset();
  EXPECT_TRUE(eventually([&] { return events->given_up == 1; }));
  EXPECT_EQ(events->withdrawn, 0);
}

// The destructor's whole time, at its best.
class OrphanedAtTheEnd : public OrphanedLease {
 protected:
  static constexpr Millis op_timeout = 150ms;

  // `prepare` leaves something to be withdrawn.
  template <class Prepare>
  Millis end_of_client(const std::string& url, Prepare prepare) {
    return best_of_three(op_timeout + 50ms, [&] {
      std::optional<Client> client(std::in_place, url);
      prepare(*client);
      const Stopwatch watch;
      client.reset();
      return watch.elapsed_ms();
    });
  }
};

TEST_F(OrphanedAtTheEnd, OfItsClientIsWithdrawnWhereTheServerAnswers) {
  FaultProxy proxy(server.tcp());
  const Millis took = end_of_client(proxy.url(), [&](Client& client) {
    std::optional<Lease> lease = taken(client, key, limited(op_timeout));
    proxy.refuse();
    proxy.drop_all();
    lease.reset();
    EXPECT_TRUE(truth.exists(key));
    proxy.refuse(false);
  });
  EXPECT_LE(took, op_timeout + 200ms);
  EXPECT_FALSE(truth.exists(key));
}

TEST_F(OrphanedAtTheEnd, OfItsClientHasOneOpTimeoutWhereTheServerStandsStill) {
  for (const Millis before : {0ms, 500ms}) {
    std::optional<Stopped> stopped;
    const Millis took = end_of_client(server.url_tcp(), [&](Client& client) {
      stopped.reset();
      ASSERT_TRUE(reachable(client));
      std::optional<Lease> lease = taken(client, fresh_key(), limited(op_timeout));
      stopped.emplace(server);
      lease.reset();
      pause_for(before);
    });
    EXPECT_LE(took, op_timeout + 200ms) << "after " << before.count() << " ms";
  }
}

TEST_F(OrphanedAtTheEnd, OfItsClientHasOneOpTimeoutThoughTheNextTryWouldBeLater) {
  std::optional<Stopped> stopped;
  const Millis took = end_of_client(server.url_tcp(), [&](Client& client) {
    stopped.reset();
    std::optional<Lease> lease = taken(client, fresh_key(), limited(op_timeout));
    truth.config_set("min-replicas-to-write", "1");
    lease.reset();
    pause_for(1'700ms);  // five tries, each with a longer pause behind it
    truth.config_set("min-replicas-to-write", "0");
    stopped.emplace(server);
  });
  EXPECT_LE(took, op_timeout + 200ms);
}

TEST_F(OrphanedAtTheEnd, OfItsClientHasOneOpTimeoutWhereTheServerIsGone) {
  FaultProxy proxy(server.tcp());
  for (const bool hangs : {false, true}) {
    const Millis took = end_of_client(proxy.url(), [&](Client& client) {
      proxy.refuse(false);
      proxy.on_new({});
      ASSERT_TRUE(reachable(client));
      std::optional<Lease> lease = taken(client, fresh_key(), limited(op_timeout));
      if (hangs) proxy.on_new(black_hole());
      if (!hangs) proxy.refuse();
      proxy.drop_all();
      lease.reset();
      pause_for(300ms);
    });
    EXPECT_LE(took, op_timeout + 200ms) << (hangs ? "hanging" : "refused");
  }
}

// Never sure whether it granted, never able to take back.
class DoubtfulStore final : public SpyStore {
 public:
  DoubtfulStore() : SpyStore(std::make_shared<MemoryStore>()) {}
  Acquisition acquire(const AcquireRequest&, const Limits&) override {
    return Doubtful{std::make_unique<Forgotten>(), Error{Errc::unknown_outcome, "nobody knows"}};
  }
  Released release(std::string_view, std::string_view, const Limits&) override {
    return {ReleaseOutcome::unavailable, {}, {Errc::not_ready, "not now"}};
  }

 private:
  struct Forgotten final : Doubt {
    bool can_retry() noexcept override { return false; }
    Acquisition retry(const AcquireRequest&, const Limits&) override { return Error{Errc::timed_out, "no"}; }
    Released withdraw(const Limits&) override { return {ReleaseOutcome::unavailable, {}, {Errc::not_ready, "no"}}; }
    void abandon() noexcept override {}
  };
};

TEST(OrphanedLeases, BeyondABoundAreGivenUpTheOldestFirst) {
  const auto events = std::make_shared<KeeperEvents>();
  Client client(std::make_shared<DoubtfulStore>(), {.observer = events});
  const auto leave = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) (void)client.try_acquire("lease", kept(60s));
  };
  leave(Orphans::most);
  EXPECT_EQ(events->given_up, 0);
  leave(100);
  EXPECT_EQ(events->given_up, 100);
  EXPECT_EQ(events->withdrawn, 0);
}

TEST(OrphanedLeases, AreDroppedInTheOrderInWhichTheyCame) {
  Orphans orphans;
  const Deadline now = LeaseClock::now();
  for (std::size_t i = 0; i < Orphans::most + 3; ++i) {
    const std::string name = std::to_string(i);
    const auto dropped = orphans.add({name, name, 1s, Deadline::min(), now + 60s}, now);
    if (i < Orphans::most) {
      EXPECT_FALSE(dropped);
    } else {
      ASSERT_TRUE(dropped);
      EXPECT_EQ(dropped->key, std::to_string(i - Orphans::most));
    }
  }
  EXPECT_EQ(orphans.size(), Orphans::most);
}

}  // namespace
}  // namespace redlease
