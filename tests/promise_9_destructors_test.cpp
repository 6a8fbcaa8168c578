// Promise 9: destructors never throw and never take longer than one operation timeout; no signals, no output.
#include <csignal>
#include <thread>

#include "promise_support.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class Promise9DestructorsAreQuietAndBounded : public OverBothWays {
 protected:
  static constexpr Millis op_timeout = 300ms;
  template <class Destroy>
  static void expect_within_one_op_timeout(const char* what, Destroy destroy) {
    const Stopwatch watch;
    destroy();
    EXPECT_LE(watch.elapsed_ms(), op_timeout + 200ms) << what;
  }
};
INSTANTIATE_TEST_SUITE_P(Over, Promise9DestructorsAreQuietAndBounded, both_ways, name_of);

static_assert(std::is_nothrow_destructible_v<Lease> && std::is_nothrow_destructible_v<Claim> &&
              std::is_nothrow_destructible_v<LeaseGuard> && std::is_nothrow_destructible_v<Client>);

TEST_P(Promise9DestructorsAreQuietAndBounded, OnAServerThatStandsStill) {
  auto other = std::make_unique<Client>(url);
  const LeaseOptions options = limited(op_timeout);
  std::optional<Lease> lease = taken(client, key + "1", options);
  std::optional<LeaseGuard> guard;
  guard.emplace(client, key + "2", options);
  std::optional<Lease> of_other = taken(*other, key + "3", options);
  ASSERT_TRUE(reachable(client));
  const Stopped stopped(server);
  std::optional<Claim> claim = claim_of(client.try_acquire(key + "4", options));
  expect_within_one_op_timeout("Lease", [&] { lease.reset(); });
  expect_within_one_op_timeout("LeaseGuard", [&] { guard.reset(); });
  expect_within_one_op_timeout("Claim", [&] { claim.reset(); });
  expect_within_one_op_timeout("Client", [&] { other.reset(); });
  expect_within_one_op_timeout("Lease without its Client", [&] { of_other.reset(); });
}

TEST_P(Promise9DestructorsAreQuietAndBounded, OnAServerThatIsGone) {
  FaultProxy proxy(address_of(server), front());
  Client cut_off(proxy.url());
  const LeaseOptions options = limited(op_timeout);
  std::optional<Lease> lease = taken(cut_off, key + "1", options);
  std::optional<LeaseGuard> guard;
  guard.emplace(cut_off, key + "2", options);
  proxy.withhold_replies();
  std::optional<Claim> claim = claim_of(cut_off.try_acquire(key + "3", options));
  proxy.refuse();
  proxy.drop_all();
  expect_within_one_op_timeout("Claim", [&] { claim.reset(); });
  expect_within_one_op_timeout("Lease", [&] { lease.reset(); });
  expect_within_one_op_timeout("LeaseGuard", [&] { guard.reset(); });
}

TEST_P(Promise9DestructorsAreQuietAndBounded, ALeaseOutlivesItsClientAndStillGivesItselfBack) {
  auto mortal = std::make_unique<Client>(url);
  Lease released = taken(*mortal, key + "1");
  std::optional<Lease> dropped = taken(*mortal, key + "2");
  std::optional<LeaseGuard> guard;
  guard.emplace(*mortal, key + "3");
  mortal.reset();
  EXPECT_TRUE(released.held());
  EXPECT_EQ(released.renew(), RenewOutcome::renewed);
  EXPECT_EQ(released.release(), ReleaseOutcome::released);
  dropped.reset();
  guard.reset();
  for (const char* suffix : {"1", "2", "3"}) EXPECT_FALSE(truth.exists(key + suffix));
}

TEST_P(Promise9DestructorsAreQuietAndBounded, AClaimOutlivesItsClientAndStillWithdraws) {
  FaultProxy proxy(address_of(server), front());
  auto mortal = std::make_unique<Client>(proxy.url());
  ASSERT_TRUE(reachable(*mortal));
  proxy.withhold_replies();
  std::optional<Claim> claim = claim_of(mortal->try_acquire(key, limited(op_timeout)));
  mortal.reset();
  ASSERT_TRUE(truth.exists(key));
  claim.reset();
  EXPECT_TRUE(eventually([&] { return !truth.exists(key); }));
}

TEST_P(Promise9DestructorsAreQuietAndBounded, AKnownLossCostsNothingAtTheEnd) {
  std::optional<Lease> lease = taken(client, key, limited(1s));
  truth.del(key);
  ASSERT_EQ(lease->renew(), RenewOutcome::lost);
  const Stopped stopped(server);
  const Stopwatch watch;
  lease.reset();
  EXPECT_LE(watch.elapsed_ms(), 100ms) << "nothing was left to send";
}

TEST_P(Promise9DestructorsAreQuietAndBounded, NothingIsPrintedAndNoSignalIsRaised) {
  // SIGPIPE's default would end this program.
  struct sigaction before {};
  ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &before), 0);
  ASSERT_EQ(before.sa_handler, SIG_DFL);
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  {
    FaultProxy proxy(address_of(server), front());
    Client cut_off(proxy.url());
    std::optional<Lease> lease = std::move(cut_off.try_acquire(key, limited(op_timeout))).lease();
    Faults reset;
    reset.reset = true;
    proxy.set(reset);
    proxy.drop_all();
    proxy.refuse();
    if (lease) (void)lease->renew();
    (void)cut_off.try_acquire(key, limited(op_timeout)).outcome();
    if (lease) (void)lease->release();
    (void)cut_off.ping();
  }
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  struct sigaction after {};
  ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &after), 0);
  EXPECT_EQ(after.sa_handler, SIG_DFL);
}

}  // namespace
}  // namespace redlease
