// The connection cut after each byte written and after each byte read, compared with the server's truth.
#include <array>
#include <set>

#include "promise_support.hpp"
#include "support/foreground.hpp"

namespace redlease {
namespace {

using namespace testing_support;

// Where the connection ends: once so many bytes of the request have reached the server, or so many of the answer the
// client.
struct Cut {
  enum Side { up, down } side;
  std::uint64_t bytes;
};
std::string text(const Cut& cut) { return (cut.side == Cut::up ? " up " : " down ") + std::to_string(cut.bytes); }

struct Size {
  std::uint64_t up, down;
};

class CutConnection : public OverBothWays {
 protected:
  // Behind each byte (or every step-th) of an exchange of this size, the last included.
  static std::vector<Cut> cuts(const Size& size, std::uint64_t step = 1) {
    std::vector<Cut> all;
    for (std::uint64_t i = 0; i < size.up; i += step) all.push_back({Cut::up, i});
    all.push_back({Cut::up, size.up});
    for (std::uint64_t i = 1; i < size.down; i += std::min<std::uint64_t>(step, 5)) all.push_back({Cut::down, i});
    all.push_back({Cut::down, size.down});
    all.push_back({Cut::down, size.down + 16});  // never reached: the digits of a time may be fewer or more
    return all;
  }

  // On a connection that has moved so much already.
  static Faults faults_of(const Cut& cut, const Size& moved = {0, 0}) {
    Faults faults;
    if (cut.side == Cut::up) faults.up.cut_after = moved.up + cut.bytes;
    if (cut.side == Cut::down) faults.down.cut_after = moved.down + cut.bytes;
    faults.reset = cut.bytes % 2 == 1;
    return faults;
  }
  // Some are retried and not dropped; not all, since to withdraw elsewhere takes the time until the server refuses.
  static bool retried(const Cut& cut) { return cut.bytes % 61 == 7; }
  LeaseOptions options_for(const Cut& cut) const { return retried(cut) ? limited(300ms, 50s) : options; }

  void cut_newest_at(const Cut& cut) { proxy.set(faults_of(cut, {proxy.newest().up, proxy.newest().down})); }

  // What one call moves, on a connection that stands.
  template <class Call>
  Size measure(Call call) {
    EXPECT_TRUE(reachable(cut_off));
    const auto before = proxy.newest();
    call();
    EXPECT_EQ(proxy.connections(), 1U);
    const auto after = proxy.newest();
    return {after.up - before.up, after.down - before.down};
  }

  // A name as long as all others, so that all requests are.
  std::string name() { return key + ":" + std::to_string(++names); }

  void warm_up() {
    proxy.heal();
    proxy.refuse(false);
    ASSERT_TRUE(reachable(cut_off));
  }

  // After a cut, with the server done: is what was told true, and will it stay true?
  void check(AcquireResult result, const std::string& of, const Cut& cut) {
    ASSERT_TRUE(proxy.settled());
    const auto on_server = truth.get(of);
    const std::string where = describe(result) + text(cut);
    ++seen[static_cast<std::size_t>(result.outcome())];
    switch (result.outcome()) {
      case AcquireOutcome::acquired: {
        Lease lease = lease_of(std::move(result));
        EXPECT_EQ(on_server, lease.token().str()) << where;
        const std::string remembered = truth.get(meta_of(of)).value_or("");
        EXPECT_TRUE(remembered.starts_with(std::to_string(fence_of(lease)) + " " + lease.token().str())) << where;
        proxy.heal();  // a cut that was not reached
        EXPECT_EQ(lease.release(), ReleaseOutcome::released) << where;
        break;
      }
      case AcquireOutcome::busy: ADD_FAILURE() << "a free key told busy: " << where; break;
      case AcquireOutcome::unavailable:
        EXPECT_EQ(on_server, std::nullopt) << where;
        expect_for_people(result.unavailable()->error, of, "");
        never.insert(of);
        break;
      case AcquireOutcome::unknown: {
        std::optional<Claim> claim = claim_of(std::move(result));
        if (on_server) {
          EXPECT_EQ(on_server, claim->token().str()) << where;
        }
        expect_for_people(claim->error(), of, "");
        on_server ? ++executed : ++not_executed;
        if (retried(cut)) {
          const OwnerToken old = claim->token();
          AcquireResult again = std::move(*claim).retry(deadline_in(5s));
          while (again.outcome() == AcquireOutcome::unknown) again = claim_of(std::move(again)).retry(deadline_in(5s));
          const Lease lease = lease_of(std::move(again));
          EXPECT_NE(lease.token(), old) << where;
          EXPECT_EQ(truth.get(of), lease.token().str()) << where;
        }
        std::move(*claim).abandon();  // what withdraws it otherwise is not this test's
        truth.del(of);
      }
    }
  }

  // What was told as not executed stays so when its time is over.
  void expect_never_executed() {
    std::this_thread::sleep_for(not_after);
    for (const std::string& of : never) EXPECT_FALSE(truth.exists(of)) << of;
  }

  int count(AcquireOutcome outcome) const { return seen[static_cast<std::size_t>(outcome)]; }

  static constexpr Millis op_timeout = 2s, not_after = op_timeout + 200ms;
  const LeaseOptions options = limited(op_timeout, 50s);
  FaultProxy proxy{address_of(server), front()};
  Client cut_off{std::make_shared<Foreground>(proxy.url())};
  int names{1000};
  std::array<int, 4> seen{};
  int executed{0}, not_executed{0};
  std::set<std::string> never;
};
INSTANTIATE_TEST_SUITE_P(Over, CutConnection, both_ways, name_of);

TEST_P(CutConnection, AnAcquireOnAStandingConnectionIsNeverToldAgainstTheTruth) {
  lease_of(cut_off.try_acquire(name(), options)).release();  // the server knows the scripts now
  const std::string measured = name();
  std::optional<Lease> lease;
  const Size whole = measure([&] { lease = lease_of(cut_off.try_acquire(measured, options)); });
  lease.reset();
  ASSERT_GT(whole.up, 200U);
  for (const Cut& cut : cuts(whole)) {
    warm_up();
    const std::string of = name();
    cut_newest_at(cut);
    check(cut_off.try_acquire(of, options_for(cut)), of, cut);
  }
  EXPECT_GT(count(AcquireOutcome::acquired), 0);
  EXPECT_GT(count(AcquireOutcome::unknown), 0);
  EXPECT_GT(executed, 0);
  EXPECT_GT(not_executed, 0);
}

TEST_P(CutConnection, AnAcquireThatMustConnectFirstIsNeverToldAgainstTheTruth) {
  lease_of(cut_off.try_acquire(name(), options)).release();
  const auto connected = proxy.connections();
  const std::string measured = name();
  Client first(std::make_shared<Foreground>(proxy.url()));
  lease_of(first.try_acquire(measured, options)).abandon();
  ASSERT_EQ(proxy.connections(), connected + 1);
  const auto whole = proxy.newest();
  for (const Cut& cut : cuts({whole.up, whole.down})) {
    const std::string of = name();
    proxy.on_next(faults_of(cut));
    Client fresh(std::make_shared<Foreground>(proxy.url()));
    check(fresh.try_acquire(of, options_for(cut)), of, cut);
  }
  EXPECT_GT(count(AcquireOutcome::acquired), 0);
  EXPECT_GT(count(AcquireOutcome::unknown), 0);
  EXPECT_GT(count(AcquireOutcome::unavailable), 0);
  expect_never_executed();
}

TEST_P(CutConnection, AnAcquireByTheTextOfAScriptIsNeverToldAgainstTheTruth) {
  lease_of(cut_off.try_acquire(name(), options)).release();
  truth.command({"SCRIPT", "FLUSH"});
  const std::string measured = name();
  std::optional<Lease> lease;
  const Size whole = measure([&] { lease = lease_of(cut_off.try_acquire(measured, options)); });
  lease.reset();
  ASSERT_GT(whole.up, 1'500U) << "the text was not sent";
  for (const Cut& cut : cuts(whole, 23)) {
    warm_up();
    truth.command({"SCRIPT", "FLUSH"});
    const std::string of = name();
    cut_newest_at(cut);
    check(cut_off.try_acquire(of, options_for(cut)), of, cut);
  }
  EXPECT_GT(executed, 0);
  EXPECT_GT(not_executed, 0);
}

TEST_P(CutConnection, AHeldKeyIsBusyOrUnknownAndItsHolderIsLeftAlone) {
  truth.command({"SET", key, "another", "PX", "600000"});
  lease_of(cut_off.try_acquire(name(), options)).release();
  const Size whole = measure([&] { busy_of(cut_off.try_acquire(key, options)); });
  for (const Cut& cut : cuts(whole)) {
    warm_up();
    cut_newest_at(cut);
    AcquireResult result = cut_off.try_acquire(key, options);
    ++seen[static_cast<std::size_t>(result.outcome())];
    ASSERT_TRUE(proxy.settled());
    { const AcquireResult dropped = std::move(result); }
    ASSERT_EQ(truth.get(key), "another") << text(cut);
  }
  EXPECT_EQ(count(AcquireOutcome::acquired), 0);
  EXPECT_GT(count(AcquireOutcome::busy), 0);
  EXPECT_GT(count(AcquireOutcome::unknown), 0);
}

TEST_P(CutConnection, ARenewalIsNeverToldAgainstTheTruth) {
  Lease lease = lease_of(cut_off.try_acquire(key, options));
  ASSERT_EQ(lease.renew(), RenewOutcome::renewed);
  const Size whole = measure([&] { lease.renew(); });
  std::array<int, 4> told{};
  for (const bool comes_back : {true, false}) {
    for (const Cut& cut : cuts(whole)) {
      warm_up();
      truth.command({"PEXPIRE", key, "30000"});
      const Deadline before = lease.deadline();
      if (!comes_back) proxy.refuse();
      cut_newest_at(cut);
      const RenewOutcome outcome = lease.renew();
      ASSERT_TRUE(proxy.settled());
      ++told[static_cast<std::size_t>(outcome)];
      const bool longer = truth.pttl(key) > 40'000;
      const auto where = std::string(to_string(outcome)) + text(cut) + ": " + lease.last_error().detail;
      ASSERT_NE(outcome, RenewOutcome::lost) << where;
      EXPECT_TRUE(lease.held()) << where;
      if (outcome == RenewOutcome::renewed) {
        EXPECT_TRUE(longer) << where;
        EXPECT_GT(lease.deadline(), before) << where;
      } else {
        EXPECT_EQ(lease.deadline(), before) << where;
        expect_for_people(lease.last_error(), key, "");
      }
      if (outcome == RenewOutcome::unavailable) {
        EXPECT_FALSE(longer) << where;
      }
    }
  }
  EXPECT_GT(told[static_cast<std::size_t>(RenewOutcome::renewed)], 0);
  EXPECT_GT(told[static_cast<std::size_t>(RenewOutcome::unknown)], 0);
  EXPECT_GT(told[static_cast<std::size_t>(RenewOutcome::unavailable)], 0);
}

TEST_P(CutConnection, AReleaseIsNeverToldAgainstTheTruth) {
  std::string of = name();
  Lease lease = lease_of(cut_off.try_acquire(of, options));
  lease.release();
  of = name();
  lease = lease_of(cut_off.try_acquire(of, options));
  const Size whole = measure([&] { lease.release(); });
  std::array<int, 4> told{};
  for (const bool comes_back : {true, false}) {
    for (const Cut& cut : cuts(whole)) {
      warm_up();
      of = name();
      lease = lease_of(cut_off.try_acquire(of, options));
      if (!comes_back) proxy.refuse();
      cut_newest_at(cut);
      const ReleaseOutcome outcome = lease.release();
      ASSERT_TRUE(proxy.settled());
      ++told[static_cast<std::size_t>(outcome)];
      const bool there = truth.exists(of);
      const auto where = std::string(to_string(outcome)) + text(cut) + ": " + lease.last_error().detail;
      EXPECT_FALSE(lease.held()) << where;
      ASSERT_NE(outcome, ReleaseOutcome::not_held) << where;
      if (outcome == ReleaseOutcome::released) {
        EXPECT_FALSE(there) << where;
      } else {
        expect_for_people(lease.last_error(), of, "");
      }
      if (outcome == ReleaseOutcome::unavailable) {
        EXPECT_TRUE(there) << where;
      }
      if (comes_back) {
        EXPECT_FALSE(there) << "with a server to be reached it is given back: " << where;
      }
      truth.del(of);
    }
  }
  EXPECT_GT(told[static_cast<std::size_t>(ReleaseOutcome::released)], 0);
  EXPECT_GT(told[static_cast<std::size_t>(ReleaseOutcome::unknown)], 0);
  EXPECT_GT(told[static_cast<std::size_t>(ReleaseOutcome::unavailable)], 0);
}

}  // namespace
}  // namespace redlease
