// Who gets a lease that is given back, what that one is told, and in which order it is done.
#include "queue_at_server.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class QueueHandOver : public QueueTest {
 protected:
  static std::vector<MonitorLine> by_script(Monitor& monitor) {
    std::vector<MonitorLine> lines;
    for (MonitorLine& line : monitor.lines()) {
      if (line.by_script()) lines.push_back(std::move(line));
    }
    return lines;
  }
};

TEST_F(QueueHandOver, AReleaseGrantsToTheFirstWaiterWithItsOwnTtlFloorAndLabel) {
  const std::uint64_t first_fence = hold();
  const std::uint64_t floor = first_fence + (std::uint64_t{1} << 40);
  Waiter a(store, key, "label of a", 20s, floor), b(store, key, "b");
  a.enqueue();
  b.enqueue();
  EXPECT_EQ(release(), ReleaseOutcome::released);
  EXPECT_EQ(holder(), a.token());
  const long long pttl = truth.pttl(key);
  EXPECT_LE(pttl, 20'000);
  EXPECT_GT(pttl, 10'000);
  EXPECT_EQ(fence(), floor + 1);
  const LeaseInfo info = store.inspect(key, ample()).value();
  EXPECT_TRUE(info.held);
  EXPECT_EQ(info.holder, "host:1");
  EXPECT_EQ(info.label, "label of a");
  EXPECT_LT(info.held_for.value_or(1h), 10s);
  const Tokens rest{b.token()};
  EXPECT_EQ(queued_tokens(), rest);
}

TEST_F(QueueHandOver, EachGrantHasALargerFence) {
  std::uint64_t last = hold();
  std::string holding = "holder";
  for (int i = 0; i < 5; ++i) {
    Waiter next(store, key, "next");
    next.enqueue();
    ASSERT_EQ(release(holding), ReleaseOutcome::released);
    const auto grant = next.hears();
    ASSERT_TRUE(grant);
    EXPECT_EQ(static_cast<std::uint64_t>(grant->fence), fence());
    EXPECT_GT(fence(), last);
    last = fence();
    holding = next.token();
  }
}

TEST_F(QueueHandOver, TheFenceIsKeptBeforeTheLeaseAndOneGrantIsSaidLast) {
  hold();
  Waiter a(store, key, "a"), b(store, key, "b");
  a.enqueue();
  b.enqueue();
  const std::string inbox = inbox_of(a);
  const std::int64_t before = server_now();
  Monitor monitor(server.tcp());
  release();
  const std::int64_t after = server_now();
  std::vector<std::string> writes;
  std::vector<std::string> said;
  for (const MonitorLine& line : by_script(monitor)) {
    if (line.name() == "SET") writes.push_back("SET " + line.argv.at(1));
    if (line.name() == "DEL") writes.push_back("DEL");
    if (line.name() == "PUBLISH") {
      writes.push_back("PUBLISH");
      said = line.argv;
    }
  }
  const std::vector<std::string> in_order{"SET " + meta, "SET " + key, "PUBLISH"};
  EXPECT_EQ(writes, in_order);
  ASSERT_EQ(said.size(), 3U);
  EXPECT_EQ(said[1], "redlease:inbox:" + inbox);
  const std::string time = word(said[2], 2);
  EXPECT_EQ(said[2], a.token() + " " + std::to_string(fence()) + " " + time + " " + key);
  EXPECT_GE(std::stoll(time), before);
  EXPECT_LE(std::stoll(time), after);
}

TEST_F(QueueHandOver, TheWaiterHearsFenceAndTimeOfItsGrantAndOthersHearNothing) {
  hold();
  Waiter a(store, key, "a"), b(store, key, "b");
  const Seat::Queued queued = a.enqueue();
  b.enqueue();
  release();
  const auto grant = a.hears();
  ASSERT_TRUE(grant);
  EXPECT_EQ(static_cast<std::uint64_t>(grant->fence), fence());
  EXPECT_GE(grant->server_time, queued.place.server_time);
  EXPECT_LE(grant->server_time, server_now());
  EXPECT_FALSE(b.hears(20ms));
}

TEST_F(QueueHandOver, ABrokenLeaseGoesToTheFirstWaiter) {
  hold();
  Waiter a(store, key, "a"), b(store, key, "b");
  a.enqueue();
  b.enqueue();
  EXPECT_TRUE(store.break_lease(key, ample()).value());
  EXPECT_EQ(holder(), a.token());
  EXPECT_TRUE(a.hears());
  EXPECT_TRUE(store.break_lease(key, ample()).value());
  EXPECT_EQ(holder(), b.token());
  EXPECT_TRUE(store.break_lease(key, ample()).value());
  EXPECT_FALSE(truth.exists(key));
  EXPECT_FALSE(store.break_lease(key, ample()).value());
}

TEST_F(QueueHandOver, ABreakOfAFreeKeyOrOfNoLeaseLeavesTheQueueAlone) {
  hold();
  Waiter a(store, key, "a");
  a.enqueue();
  truth.set(key, std::string(300, 'x'));
  EXPECT_FALSE(store.break_lease(key, ample()).has_value());
  truth.del(key);
  EXPECT_FALSE(store.break_lease(key, ample()).value());
  EXPECT_EQ(members().size(), 1U);
}

TEST_F(QueueHandOver, AReleaseWithNobodyWaitingFreesTheKey) {
  hold();
  EXPECT_EQ(release(), ReleaseOutcome::released);
  EXPECT_FALSE(truth.exists(key));
}

TEST_F(QueueHandOver, ALeaseThatIsNotOursIsNotHandedOver) {
  hold();
  Waiter a(store, key, "a");
  a.enqueue();
  Released other = store.release(key, "somebody", ample());
  EXPECT_EQ(other.outcome, ReleaseOutcome::not_held);
  EXPECT_EQ(other.cause, LossCause::taken);
  truth.del(key);
  other = store.release(key, "holder", ample());
  EXPECT_EQ(other.outcome, ReleaseOutcome::not_held);
  EXPECT_EQ(other.cause, LossCause::gone);
  EXPECT_FALSE(truth.exists(key)) << "that is for those who ask";
  EXPECT_EQ(members().size(), 1U);
}

TEST_F(QueueHandOver, ASecondReleaseDoesNotTakeTheLeaseFromWhoGotIt) {
  hold();
  Waiter a(store, key, "a"), b(store, key, "b");
  a.enqueue();
  b.enqueue();
  EXPECT_EQ(release(), ReleaseOutcome::released);
  EXPECT_EQ(release(), ReleaseOutcome::not_held);
  EXPECT_EQ(holder(), a.token());
}

TEST_F(QueueHandOver, AnExpiredLeaseGoesToTheFirstWhenTheNextAsks) {
  hold("holder", 50ms);
  Waiter a(store, key, "a"), b(store, key, "b");
  a.enqueue();
  b.enqueue();
  ASSERT_TRUE(eventually([&] { return !truth.exists(key); }));
  EXPECT_EQ(only<Seat::Queued>(b.ask()).place.ahead, 0U);
  EXPECT_EQ(holder(), a.token());
  EXPECT_TRUE(a.hears());
}

TEST_F(QueueHandOver, GrantsToOneInboxReachTheWaiterTheyAreFor) {
  RedisStore sharing(parse_endpoint(server.url_tcp()), 16, nullptr, Clock::real(), 0);
  hold();
  Waiter a(sharing, key, "a"), b(sharing, key, "b");
  a.enqueue();
  b.enqueue();
  EXPECT_EQ(inbox_of(a), inbox_of(b));
  release();
  EXPECT_TRUE(a.hears());
  EXPECT_FALSE(b.hears(20ms));
  release(a.token());
  EXPECT_TRUE(b.hears());
  EXPECT_EQ(holder(), b.token());
}

TEST_F(QueueHandOver, AFenceThatCannotGrowIsNotGrantedAndTheWaiterStaysWithItsQueueExpiring) {
  hold();
  Waiter a(store, key, "a");
  a.enqueue();
  truth.command({"SET", meta, "9007199254740990 someone 0 host:9 ", "PX", "60000"});
  EXPECT_EQ(release(), ReleaseOutcome::released);
  EXPECT_FALSE(truth.exists(key));
  EXPECT_EQ(members().size(), 1U);
  EXPECT_GT(truth.pttl(queue), 0) << "what was put back expires like all else";
}

}  // namespace
}  // namespace redlease
