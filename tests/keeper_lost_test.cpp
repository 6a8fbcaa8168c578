// Leases that are lost: who learns of it, when, and what happens no more.
#include "in_child.hpp"
#include "keeper_support.hpp"
#include "support/monitor.hpp"
#include "support/shared_page.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class LostLease : public OnItsOwnServer {
 protected:
  // Renewed every 700 ms or so; what it is told goes to `told`.
  static LeaseOptions told_to(Told& told, Millis ttl = 2s) {
    LeaseOptions options = kept(ttl);
    options.on_lost = told.recorder();
    return options;
  }

  static bool names(const MonitorLine& line, const std::string& token) {
    return std::find(line.argv.begin(), line.argv.end(), token) != line.argv.end();
  }
};

TEST_F(LostLease, ThatAnotherHasIsKnownAtTheNextRenewalWhichIsTheLast) {
  Client client(server.url_tcp(), {.observer = events});
  Monitor monitor(server.unix_socket());
  Told told;
  const LeaseGuard guard = guarded(client, key, told_to(told));
  const StopTime stop(guard.stop_token());
  ASSERT_TRUE(eventually([&] { return events->renewals > 0; }));
  ASSERT_EQ(truth.command({"SET", key, "another's", "PX", "60000"}).text, "OK");
  ASSERT_TRUE(eventually([&] { return told.times > 0; }));
  EXPECT_EQ(told.cause, LossCause::taken);
  EXPECT_TRUE(stop.stopped());
  EXPECT_FALSE(guard.held());
  EXPECT_EQ(guard.loss(), LossCause::taken);
  EXPECT_THROW(guard.ensure_held(), LeaseLost);
  const int renewals = events->renewals;
  monitor.clear();
  pause_for(1'500ms);
  for (const MonitorLine& line : monitor.lines()) EXPECT_FALSE(names(line, guard.token().str())) << line.line;
  EXPECT_EQ(events->renewals, renewals);
  EXPECT_EQ(events->losses, 1);
  EXPECT_EQ(told.times, 1);
  EXPECT_EQ(truth.get(key), "another's");
}

TEST_F(LostLease, ThatIsGoneFromTheServerIsKnownAtTheNextRenewalAndNotMadeAnew) {
  Client client(server.url_tcp(), {.observer = events});
  Told told;
  const LeaseGuard guard = guarded(client, key, told_to(told));
  ASSERT_TRUE(eventually([&] { return events->renewals > 0; }));
  truth.del(key);
  ASSERT_TRUE(eventually([&] { return told.times > 0; }));
  EXPECT_EQ(told.cause, LossCause::gone) << "a renewal went by";
  EXPECT_FALSE(guard.held());
  pause_for(700ms);
  EXPECT_FALSE(truth.exists(key));
  EXPECT_EQ(told.times, 1);
}

TEST_F(LostLease, WhoseServerCameBackEmptyIsGone) {
  Client client(server.url_tcp());
  Told told;
  const LeaseGuard guard = guarded(client, key, told_to(told, 6s));
  server.restart(false);
  ASSERT_TRUE(eventually([&] { return told.times > 0; }, 8s));
  EXPECT_EQ(told.cause, LossCause::gone);
  EXPECT_FALSE(guard.held());
}

TEST_F(LostLease, WhoseServerStoodStillTooLongStopsTheWorkAtTheDeadlineBeforeAnotherGetsIt) {
  unless_stalled(10ms, [&]() -> std::string {
    truth.flushall();
    Client client(server.url_tcp());
    Told told;
    LeaseGuard guard = guarded(client, key, told_to(told, 1s));
    const StopTime stop(guard.stop_token());
    Contender next(server.url_unix(), key);
    pause_for(500ms);  // it was renewed at least once
    Deadline deadline;
    {
      const Stopped stopped(server);
      deadline = guard.deadline();
      pause_for(1'100ms);
      EXPECT_FALSE(guard.held());
    }
    if (!eventually([&] { return next.has_it() && told.times > 0; })) return "nobody got it, or nobody was told";
    EXPECT_GT(next.at(), deadline);
    EXPECT_FALSE(guard.held());
    EXPECT_EQ(guard.loss(), LossCause::deadline);
    // What the stopped server had been sent by the loser takes nothing from the next.
    pause_for(300ms);
    EXPECT_EQ(truth.get(key), next.token());
    EXPECT_EQ(told.times, 1);
    if (stop.at() > next.at()) return "the other was first";
    return fault_of("the stop", stop.at(), deadline);
  });
}

// In a process of its own, which is stopped in the middle of it all.
TEST_F(LostLease, ByAHolderThatWasSuspendedIsNeverCalledHeldAgain) {
  enum : std::size_t { holds, taken_by_another, saw_the_loss, stopped_at, wrong };
  for (int round = 0; round < 4; ++round) {
    SharedPage page;
    const std::string mine = key + std::to_string(round);
    Children holder(1, [&](int) {
      Client client(server.url_tcp());
      const LeaseGuard guard = guarded(client, mine, kept(300ms));
      const StopTime stop(guard.stop_token());
      for (const Stopwatch watch; watch.elapsed_ms() < 20s;) {
        const bool another_has_it = page.counter(taken_by_another) == 1;
        bool says_yes = true;
        if (round % 2 == 0) {
          says_yes = guard.held();
        } else {
          try {
            guard.ensure_held();
          } catch (const LeaseLost&) {
            says_yes = false;
          }
        }
        if (says_yes && another_has_it) ++page.counter(wrong);
        if (!says_yes) ++page.counter(saw_the_loss);
        if (stop.stopped()) {
          page.counter(stopped_at) = stop.at().time_since_epoch().count();
          if (another_has_it) return;
        }
        page.counter(holds) = 1;
      }
    });
    ASSERT_TRUE(eventually([&] { return page.counter(holds) == 1; }, 10s));
    pause_for(Millis(350 + 13 * round));
    ASSERT_EQ(page.counter(saw_the_loss), 0) << "lost before the test began";
    ASSERT_EQ(::kill(holder.pid(0), SIGSTOP), 0);
    Client client(server.url_unix());
    const Lease next = lease_of(client.acquire(mine, {.ttl = 30s, .wait = 10s}));
    page.counter(taken_by_another) = 1;
    pause_for(50ms);
    const Deadline woken = LeaseClock::now();
    ASSERT_EQ(::kill(holder.pid(0), SIGCONT), 0);
    EXPECT_EQ(holder.wait(15s), std::vector<int>{0});
    EXPECT_EQ(page.counter(wrong), 0) << "it said yes while another had it";
    EXPECT_GT(page.counter(saw_the_loss), 0);
    const Deadline stopped(LeaseClock::duration(page.counter(stopped_at).load()));
    EXPECT_LT(stopped - woken, 1s) << "the work went on";
    EXPECT_EQ(truth.get(mine), next.token().str());
  }
}

TEST_F(LostLease, IsGivenBackInTheBackgroundWhereTheHolderHangs) {
  Client client(server.url_tcp(), {.observer = events});
  Told told;
  LeaseOptions options = watched(1s);
  options.on_lost = told.recorder();
  LeaseGuard guard = guarded(client, key, options);
  // Somebody, or a renewal whose answer was lost, has made it live on.
  ASSERT_EQ(truth.command({"PEXPIRE", key, "60000"}).integer, 1);
  ASSERT_TRUE(eventually([&] { return told.times == 1; }));
  EXPECT_TRUE(eventually([&] { return !truth.exists(key); }));
  EXPECT_TRUE(eventually([&] { return events->withdrawn == 1; }));
  ASSERT_EQ(truth.command({"SET", key, "another's", "PX", "60000"}).text, "OK");
  EXPECT_EQ(guard.release(), ReleaseOutcome::not_held);
  EXPECT_EQ(truth.get(key), "another's");
}

}  // namespace
}  // namespace redlease
