// A machine that is suspended while leases are kept. In an executable of its own, which brings its clock_gettime: the
// clock that runs through a suspend leaps, and all others, those of timeouts among them, stay behind.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "keeper_support.hpp"

namespace {

std::atomic<std::int64_t> seconds_suspended{0};

}  // namespace

// Found before the C library's.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  if (clock == CLOCK_BOOTTIME) time->tv_sec += seconds_suspended;
  return result;
}

namespace redlease {
namespace {

using namespace testing_support;
using std::chrono::steady_clock;

class Suspended : public OnItsOwnServer {
 protected:
  static void suspend(std::chrono::seconds time) { seconds_suspended += time.count(); }
};

TEST_F(Suspended, ForLongerThanTheTtlTheLeaseIsLostAtOnceAndTheWorkToldWithinASecond) {
  constexpr Millis ttl = 60s;  // whose next renewal is far away
  Client client(server.url_tcp(), {.observer = events});
  Told told;
  LeaseOptions options = kept(ttl);
  options.on_lost = told.recorder();
  LeaseGuard guard = guarded(client, key, options);
  const StopTime stop(guard.stop_token());
  pause_for(200ms);  // its Keeper sleeps
  ASSERT_TRUE(guard.held());

  suspend(61s);
  const auto resumed = steady_clock::now();
  EXPECT_FALSE(guard.held());
  EXPECT_THROW(guard.ensure_held(), LeaseLost);
  EXPECT_TRUE(eventually([&] { return stop.stopped() && told.times == 1; }));
  EXPECT_LT(steady_clock::now() - resumed, 1'500ms);
  EXPECT_EQ(guard.loss(), LossCause::deadline);
  EXPECT_EQ(told.cause, LossCause::deadline);

  // The server's time did not leap with it: what it still keeps is given back.
  EXPECT_TRUE(eventually([&] { return !truth.exists(key); }));
  EXPECT_TRUE(guarded(client, key, options).held());
}

TEST_F(Suspended, ForLessItIsRenewedWithinASecondAndKept) {
  constexpr Millis ttl = 60s;
  Client client(server.url_tcp(), {.observer = events});
  LeaseGuard guard = guarded(client, key, kept(ttl));
  pause_for(200ms);
  const int before = events->renewals;
  suspend(40s);
  const auto resumed = steady_clock::now();
  EXPECT_TRUE(guard.held());
  EXPECT_TRUE(eventually([&] { return events->renewals > before; }));
  EXPECT_LT(steady_clock::now() - resumed, 1'500ms);
  EXPECT_TRUE(guard.held());
  EXPECT_FALSE(guard.stop_token().stop_requested());
  EXPECT_GT(guard.deadline() - LeaseClock::now(), 50s);
}

TEST_F(Suspended, AWaitIsOverWhenItsTimeIs) {
  truth.set(key, "another's");
  Client client(server.url_tcp());
  std::atomic<bool> over{false};
  std::jthread waiter([&] {
    const AcquireResult result = client.acquire(key, {.ttl = 30s, .wait = 60s});
    EXPECT_EQ(result.outcome(), AcquireOutcome::busy) << describe(result);
    over = true;
  });
  ASSERT_TRUE(eventually([&] { return truth.exists(queue_of(key)); }));
  suspend(61s);
  const auto resumed = steady_clock::now();
  EXPECT_TRUE(eventually([&] { return over.load(); }, 20s));
  EXPECT_LT(steady_clock::now() - resumed, 6s) << "more than a heartbeat";
  EXPECT_FALSE(truth.exists(queue_of(key)));
}

}  // namespace
}  // namespace redlease
