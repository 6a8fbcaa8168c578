// Giving up: nothing of a waiter stays, and what came too late for it goes to the next.
#include "queue_at_server.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class QueueLeave : public QueueTest {};

TEST_F(QueueLeave, TheLastQuestionLeavesTheQueue) {
  hold();
  Waiter a(store, key, "a"), b(store, key, "b");
  a.enqueue();
  b.enqueue();
  truth.command({"HSET", seen, a.token(), "1", b.token(), "1"});
  truth.command({"PEXPIRE", seen, "60000"});
  only<Busy>(a.ask(Ask::last));
  const Tokens rest{b.token()};
  EXPECT_EQ(queued_tokens(), rest);
  EXPECT_FALSE(truth.command({"HEXISTS", seen, a.token()}).integer);
  EXPECT_TRUE(truth.command({"HEXISTS", seen, b.token()}).integer);
}

TEST_F(QueueLeave, TheLastQuestionTakesALeaseThatIsFree) {
  hold();
  Waiter a(store, key, "a");
  a.enqueue();
  truth.del(key);
  only<Granted>(a.ask(Ask::last));
  EXPECT_EQ(holder(), a.token());
  EXPECT_FALSE(truth.exists(queue));
}

TEST_F(QueueLeave, LeavingLeavesTheQueueAndNothingElse) {
  hold();
  Waiter a(store, key, "a"), b(store, key, "b");
  a.enqueue();
  b.enqueue();
  truth.command({"HSET", seen, a.token(), "1"});
  truth.command({"PEXPIRE", seen, "60000"});
  EXPECT_EQ(a.seat().leave(ample()).outcome, ReleaseOutcome::not_held);
  const Tokens rest{b.token()};
  EXPECT_EQ(queued_tokens(), rest);
  EXPECT_FALSE(truth.exists(seen));
  EXPECT_EQ(holder(), "holder");
}

TEST_F(QueueLeave, TakesItsEntryOutInWhicheverFormItStands) {
  const auto doubled = [this](Waiter& waiter) {
    waiter.enqueue();
    const std::string inbox = " " + inbox_of(waiter) + " ";  // a token may begin as an inbox's name does
    std::string bare = members().at(0);
    bare.replace(bare.find(inbox), inbox.size(), " - ");
    plant(bare, std::to_string(server_now()));
  };
  {
    hold();
    Waiter a(store, key, "a");
    doubled(a);
    EXPECT_EQ(a.seat().leave(ample()).outcome, ReleaseOutcome::not_held);
    EXPECT_FALSE(truth.exists(queue));
  }
  {
    Waiter a(store, key, "a");
    doubled(a);
    only<Busy>(a.ask(Ask::last));
    EXPECT_FALSE(truth.exists(queue));
  }
  Waiter a(store, key, "a");
  doubled(a);
  truth.del(key);
  only<Granted>(a.ask());
  EXPECT_FALSE(truth.exists(queue));
}

TEST_F(QueueLeave, ThatTheServerRefusesIsNotTakenForDone) {
  hold();
  Waiter a(store, key, "a");
  a.enqueue();
  const Tokens still{a.token()};
  truth.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
  const Seat::Answer last = a.ask(Ask::last);
  const Released left = a.seat().leave(ample());
  truth.command({"CONFIG", "SET", "min-replicas-to-write", "0"});
  EXPECT_TRUE(contains(only<Error>(last).detail, "refused ZREM")) << describe(last);
  EXPECT_EQ(left.outcome, ReleaseOutcome::unavailable);
  EXPECT_TRUE(contains(left.error.detail, "a place in the queue may be left")) << left.error.detail;
  EXPECT_EQ(queued_tokens(), still);
  EXPECT_EQ(a.seat().doubt()->withdraw(ample()).outcome, ReleaseOutcome::not_held);
  EXPECT_FALSE(truth.exists(queue));
}

TEST_F(QueueLeave, AGrantThatCrossedTheLeavingGoesToTheNext) {
  hold();
  Waiter a(store, key, "a"), b(store, key, "b");
  a.enqueue();
  b.enqueue();
  release();
  ASSERT_EQ(holder(), a.token());
  EXPECT_EQ(a.seat().leave(ample()).outcome, ReleaseOutcome::released);
  EXPECT_EQ(holder(), b.token());
  EXPECT_TRUE(b.hears());
  EXPECT_FALSE(truth.exists(queue));
}

TEST_F(QueueLeave, AWaiterThatGoesAwayInTheQueueHasNoInboxAnyMoreAndIsPassedOver) {
  hold();
  Waiter a(store, key, "a"), b(store, key, "b");
  a.enqueue();
  b.enqueue();
  const std::string inbox = inbox_of(a);
  EXPECT_EQ(listeners(inbox), 1);
  a.go_away();
  ASSERT_TRUE(eventually([&] { return listeners(inbox) == 0; }));
  Waiter c(store, key, "c");
  c.enqueue();
  EXPECT_NE(inbox_of(c), inbox) << "its name is never used again";
  release();
  EXPECT_EQ(holder(), b.token());
}

TEST_F(QueueLeave, ASharedInboxIsNotJoinedAnyMoreAfterAWaiterWentAwayInTheQueue) {
  RedisStore sharing(parse_endpoint(server.url_tcp()), 16, nullptr, Clock::real(), 0);
  hold();
  Waiter a(sharing, key, "a"), b(sharing, key, "b");
  a.enqueue();
  b.enqueue();
  const std::string inbox = inbox_of(a);
  a.go_away();
  Waiter c(sharing, key, "c");
  c.enqueue();
  EXPECT_NE(inbox_of(c), inbox);
  EXPECT_EQ(b.seat().leave(ample()).outcome, ReleaseOutcome::not_held);
  b.go_away();
  EXPECT_TRUE(eventually([&] { return listeners(inbox) == 0; }));
  release();
  EXPECT_EQ(holder(), c.token()) << "not the one that went away";
}

TEST_F(QueueLeave, TheInboxOfAWaiterThatLeftIsUsedByTheNext) {
  hold();
  std::string inbox;
  {
    Waiter a(store, key, "a");
    a.enqueue();
    inbox = inbox_of(a);
    a.seat().leave(ample());
  }
  Waiter b(store, key, "b");
  EXPECT_TRUE(b.seat().has_inbox());
  b.enqueue();
  EXPECT_EQ(inbox_of(b), inbox);
  release();
  EXPECT_TRUE(b.hears());
}

TEST_F(QueueLeave, AnInboxThatNobodyUsesIsClosed) {
  hold();
  std::string inbox;
  {
    Waiter a(store, key, "a");
    a.enqueue();
    inbox = inbox_of(a);
    a.seat().leave(ample());
  }
  EXPECT_TRUE(eventually([&] { return listeners(inbox) == 0; }));
}

TEST_F(QueueLeave, AnEntryOfWhoeverReleasesIsDroppedAndNotGranted) {
  hold();
  ask({.token = "holder"});  // changes nothing: it holds
  plant(RawAsk{.token = "holder"}.member(), seconds_ago(1));
  Waiter a(store, key, "a");
  a.enqueue();
  release();
  EXPECT_EQ(holder(), a.token());
  EXPECT_TRUE(members().empty());
  release(a.token());
  EXPECT_FALSE(truth.exists(key));
}

TEST_F(QueueLeave, AnEntryOfABrokenLeaseIsDroppedAndNotGranted) {
  hold();
  plant(RawAsk{.token = "holder"}.member(), seconds_ago(1));
  EXPECT_TRUE(store.break_lease(key, ample()).value());
  EXPECT_FALSE(truth.exists(key));
  EXPECT_FALSE(truth.exists(queue));
}

TEST_F(QueueLeave, AWaiterThatCanNoLongerBeWokenHasOnePlaceAndLeavesItWhole) {
  hold();
  Waiter a(store, key, "a");
  a.enqueue();
  EXPECT_EQ(only<Seat::Queued>(a.ask(Ask::reserve)).place.ahead, 0U);
  EXPECT_EQ(members().size(), 1U);
  EXPECT_EQ(inbox_in(members().at(0)), "-");
  EXPECT_EQ(only<Seat::Queued>(a.ask(Ask::queue)).place.ahead, 0U);
  EXPECT_EQ(members().size(), 1U);
  a.ask(Ask::reserve);
  a.seat().leave(ample());
  EXPECT_FALSE(truth.exists(queue));
}

}  // namespace
}  // namespace redlease
