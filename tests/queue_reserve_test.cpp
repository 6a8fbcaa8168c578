// Where nobody can be told, a turn is kept for its waiter until it asks. And what a waiter learns of its inbox.
#include "queue_at_server.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class QueueReserve : public QueueTest {
 protected:
  // A store whose user may do everything with keys, but for what the rules take away.
  std::unique_ptr<RedisStore> limited(const std::vector<std::string>& rules, std::shared_ptr<Observer> observer = {}) {
    std::vector<std::string> command{"ACL", "SETUSER", "waiting", "reset", "on", ">" + secret, "~*", "&*", "+@all"};
    command.insert(command.end(), rules.begin(), rules.end());
    if (truth.command(command).text != "OK") throw std::runtime_error("ACL SETUSER was refused");
    return std::make_unique<RedisStore>(
        parse_endpoint("redis://waiting:" + secret + "@127.0.0.1:" + std::to_string(server.port())), 16,
        std::move(observer));
  }
  void expect_reserved_for(const Waiter& waiter) {
    EXPECT_EQ(holder(), waiter.token());
    EXPECT_LE(truth.pttl(key), lifetime.count() / 2);
    EXPECT_GT(truth.pttl(key), lifetime.count() / 4);
    EXPECT_TRUE(contains(truth.get(meta).value_or(""), std::to_string(fence()) + " " + waiter.token() + " "));
  }
  // Which makes it whole.
  void expect_whole_after_asking(Waiter& waiter, Millis ttl) {
    const std::uint64_t reserved = fence();
    const Granted granted = only<Granted>(waiter.ask());
    EXPECT_EQ(static_cast<std::uint64_t>(granted.fence), reserved);
    EXPECT_EQ(fence(), reserved);
    EXPECT_EQ(holder(), waiter.token());
    EXPECT_LE(truth.pttl(key), ttl.count());
    EXPECT_GT(truth.pttl(key), ttl.count() - 20'000);
  }
  // Three wait, somebody who cannot tell them gives back, and each makes its turn whole.
  void expect_served_in_order_by(RedisStore& releaser) {
    hold();
    Waiter a(store, key, "a", 120s), b(store, key, "b", 120s), c(store, key, "c", 120s);
    a.enqueue();
    b.enqueue();
    c.enqueue();
    std::string holding = "holder";
    for (Waiter* next : {&a, &b, &c}) {
      EXPECT_EQ(releaser.release(key, holding, ample()).outcome, ReleaseOutcome::released);
      expect_reserved_for(*next);
      expect_whole_after_asking(*next, 120s);
      holding = next->token();
    }
    EXPECT_EQ(releaser.release(key, holding, ample()).outcome, ReleaseOutcome::released);
    EXPECT_FALSE(truth.exists(key));
  }
  struct Told final : Observer {
    int times{0};
    std::string why;
    void unheard(const Event& event) noexcept override {
      ++times;
      why = event.error->detail;
    }
  };
};

TEST_F(QueueReserve, TheTurnOfAWaiterWithoutInboxIsKeptForHalfItsLifetimeAndIsItsOwnWhenItAsks) {
  hold();
  Waiter a(store, key, "a", 120s);
  const Seat::Queued queued = only<Seat::Queued>(a.ask(Ask::reserve));
  EXPECT_EQ(queued.place.ahead, 0U);
  EXPECT_TRUE(queued.place.heard) << "there is nothing to be heard";
  Monitor monitor(server.tcp());
  release();
  for (const MonitorLine& line : monitor.lines()) EXPECT_NE(line.name(), "PUBLISH") << line.line;
  expect_reserved_for(a);
  EXPECT_EQ(busy_try().holder, "host:1 a");
  expect_whole_after_asking(a, 120s);
}

TEST_F(QueueReserve, WithInboxAndWithoutStandInOneOrder) {
  hold();
  Waiter a(store, key, "a"), b(store, key, "b", 120s), c(store, key, "c");
  a.enqueue();
  b.ask(Ask::reserve);
  EXPECT_EQ(c.enqueue().place.ahead, 2U);
  release();
  EXPECT_TRUE(a.hears());
  release(a.token());
  expect_reserved_for(b);
  release(b.token());
  EXPECT_TRUE(c.hears());
  EXPECT_EQ(holder(), c.token());
}

TEST_F(QueueReserve, AReservationThatIsNotUsedExpiresAndTheNextGetsTheLease) {
  hold();
  Waiter a(store, key, "a"), b(store, key, "b");
  a.ask(Ask::reserve);
  b.enqueue();
  release();
  expect_reserved_for(a);
  const std::uint64_t unused = fence();
  truth.command({"PEXPIRE", key, "1"});  // sooner than it would
  ASSERT_TRUE(eventually([&] { return !truth.exists(key); }));
  const Granted granted = only<Granted>(b.ask());
  EXPECT_GT(static_cast<std::uint64_t>(granted.fence), unused);
}

TEST_F(QueueReserve, AFreeLeaseIsKeptForTheWaiterByATryToo) {
  hold();
  Waiter a(store, key, "a", 120s);
  a.ask(Ask::reserve);
  truth.del(key);
  const Busy busy = busy_try();
  EXPECT_EQ(busy.holder, "host:1 a");
  EXPECT_LE(busy.remaining.value_or(1h), lifetime / 2);
  expect_reserved_for(a);
}

TEST_F(QueueReserve, LeavingGivesAReservationToTheNext) {
  hold();
  Waiter a(store, key, "a"), b(store, key, "b");
  a.ask(Ask::reserve);
  b.enqueue();
  release();
  EXPECT_EQ(a.seat().leave(ample()).outcome, ReleaseOutcome::released);
  EXPECT_EQ(holder(), b.token());
}

TEST_F(QueueReserve, WhoMayNotPublishReservesInOrder) { expect_served_in_order_by(*limited({"-publish"})); }

TEST_F(QueueReserve, WhoMayNotUseTheChannelReservesInOrder) {
  expect_served_in_order_by(*limited({"resetchannels", "&other:*"}));
}

TEST_F(QueueReserve, WhoMayNotSeeSubscribersReservesInOrder) { expect_served_in_order_by(*limited({"-pubsub"})); }

TEST_F(QueueReserve, WhoMayNotSeeSubscribersHintsThatATurnIsKept) {
  hold();
  Waiter a(store, key, "a", 120s);
  a.enqueue();
  limited({"-pubsub"})->release(key, "holder", ample());
  expect_reserved_for(a);
  const auto hint = a.hears();
  ASSERT_TRUE(hint);
  EXPECT_EQ(hint->fence, FencingToken{}) << "which is no grant";
  expect_whole_after_asking(a, 120s);
}

TEST_F(QueueReserve, WhoMayNotReadTheTimeFreesTheLeaseAndTheWaitersStay) {
  hold();
  Waiter a(store, key, "a");
  a.enqueue();
  EXPECT_EQ(limited({"-time"})->release(key, "holder", ample()).outcome, ReleaseOutcome::released);
  EXPECT_FALSE(truth.exists(key));
  EXPECT_EQ(members().size(), 1U);
  EXPECT_GT(truth.pttl(queue), 0);
  only<Granted>(a.ask());
}

TEST_F(QueueReserve, WhoMayNotWriteFreesTheLeaseAndTheWaitersStayInOrder) {
  hold();
  Waiter a(store, key, "a"), b(store, key, "b");
  a.enqueue();
  b.enqueue();
  EXPECT_EQ(limited({"-set"})->release(key, "holder", ample()).outcome, ReleaseOutcome::released);
  EXPECT_FALSE(truth.exists(key));
  const Tokens in_order{a.token(), b.token()};
  EXPECT_EQ(queued_tokens(), in_order);
}

TEST_F(QueueReserve, WhoMayNotSeeTheQueueReleasesAndTheWaitersStay) {
  hold();
  Waiter a(store, key, "a");
  a.enqueue();
  EXPECT_EQ(limited({"-zpopmin"})->release(key, "holder", ample()).outcome, ReleaseOutcome::released);
  EXPECT_FALSE(truth.exists(key));
  EXPECT_EQ(members().size(), 1U);
  only<Granted>(a.ask());
}

TEST_F(QueueReserve, WhoMayNotStandInTheQueueAsksAgainAndAgainAndIsToldOnce) {
  const auto told = std::make_shared<Told>();
  const auto refused = limited({"-zadd"}, told);
  hold();
  for (const char* label : {"a", "b"}) {
    Waiter waiter(*refused, key, label);
    waiter.subscribe();
    only<Busy>(waiter.ask());
    only<Busy>(waiter.ask());
  }
  EXPECT_EQ(told->times, 1);
  EXPECT_TRUE(contains(told->why, "ZADD")) << told->why;
  EXPECT_FALSE(contains(told->why, secret)) << told->why;
}

TEST_F(QueueReserve, AWaiterWhoseInboxCannotBeCheckedIsToldOnceAndStillWaits) {
  const auto told = std::make_shared<Told>();
  const auto unsure = limited({"-pubsub"}, told);
  hold();
  Waiter a(*unsure, key, "a"), b(*unsure, key, "b");
  EXPECT_TRUE(a.enqueue().place.heard) << "for all that is known";
  b.enqueue();
  a.ask();
  EXPECT_EQ(told->times, 1);
  EXPECT_TRUE(contains(told->why, "PUBSUB")) << told->why;
  release();
  EXPECT_TRUE(a.hears());
}

TEST_F(QueueReserve, AWaiterThatMayNotSubscribeIsToldOnce) {
  const auto told = std::make_shared<Told>();
  const auto deaf = limited({"-subscribe"}, told);
  hold();
  for (const char* label : {"a", "b"}) {
    Waiter waiter(*deaf, key, label, 120s);
    EXPECT_EQ(waiter.seat().subscribe(ample()), Seat::Subscribed::refused);
    only<Seat::Queued>(waiter.ask(Ask::reserve));
    waiter.seat().leave(ample());
  }
  EXPECT_EQ(told->times, 1);
  EXPECT_TRUE(contains(told->why, "SUBSCRIBE")) << told->why;
}

TEST_F(QueueReserve, AWaiterWhoseInboxIsGoneLearnsItWhenItAsks) {
  hold();
  Waiter a(store, key, "a");
  EXPECT_TRUE(a.enqueue().place.heard);
  const std::string inbox = inbox_of(a);
  kill_inboxes();
  ASSERT_TRUE(eventually([&] { return listeners(inbox) == 0; }));
  EXPECT_FALSE(only<Seat::Queued>(a.ask()).place.heard);
  a.subscribe();
  EXPECT_EQ(inbox_of(a), inbox) << "under its old name";
  EXPECT_TRUE(only<Seat::Queued>(a.ask()).place.heard);
}

TEST_F(QueueReserve, AnInboxAtAnotherServerIsNoInbox) {
  RedisServer other;
  FaultProxy proxy(server.tcp());
  RedisStore moving(parse_endpoint(proxy.url()));
  hold();
  Waiter a(moving, key, "a");
  only<Busy>(a.ask(Ask::once));  // opens the connection for the questions
  proxy.retarget(other.tcp());
  const Seat::Queued queued = a.enqueue();
  EXPECT_FALSE(queued.place.heard);
  Waiter b(store, key, "b");
  b.enqueue();
  release();
  EXPECT_EQ(holder(), b.token()) << "a cannot be told";
}

}  // namespace
}  // namespace redlease
