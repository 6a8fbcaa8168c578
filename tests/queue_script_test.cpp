// The queue at the server: who stands where, and that nobody overtakes.
#include "queue_at_server.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class QueueOrder : public QueueTest {};

TEST_F(QueueOrder, WaitersStandInTheOrderInWhichTheyFirstAsked) {
  hold();
  Waiter a(store, key, "a"), b(store, key, "b"), c(store, key, "c");
  EXPECT_EQ(a.enqueue().place.ahead, 0U);
  EXPECT_EQ(b.enqueue().place.ahead, 1U);
  const Seat::Queued last = c.enqueue();
  EXPECT_EQ(last.place.ahead, 2U);
  EXPECT_TRUE(last.place.heard);
  EXPECT_FALSE(last.place.foreign);
  EXPECT_EQ(last.busy.holder, "host:0 first");
  EXPECT_GT(last.busy.remaining.value_or(0ms), 30s);
  const Tokens in_order{a.token(), b.token(), c.token()};
  EXPECT_EQ(queued_tokens(), in_order);
}

TEST_F(QueueOrder, AskingAgainKeepsThePlace) {
  hold();
  Waiter a(store, key, "a"), b(store, key, "b");
  a.enqueue();
  b.enqueue();
  EXPECT_EQ(only<Seat::Queued>(b.ask()).place.ahead, 1U);
  EXPECT_EQ(only<Seat::Queued>(a.ask()).place.ahead, 0U);
  const Tokens in_order{a.token(), b.token()};
  EXPECT_EQ(queued_tokens(), in_order);
}

TEST_F(QueueOrder, AWaiterGetsItsPlaceBackAfterTheQueueWasDeleted) {
  hold();
  Waiter a(store, key, "a"), b(store, key, "b"), c(store, key, "c");
  a.enqueue();
  b.enqueue();
  c.enqueue();
  truth.del(queue);
  EXPECT_EQ(only<Seat::Queued>(c.ask()).place.ahead, 0U);
  EXPECT_EQ(only<Seat::Queued>(b.ask()).place.ahead, 0U);
  EXPECT_EQ(only<Seat::Queued>(a.ask()).place.ahead, 0U);
  EXPECT_EQ(only<Seat::Queued>(c.ask()).place.ahead, 2U);
  Waiter late(store, key, "late");
  EXPECT_EQ(late.enqueue().place.ahead, 3U) << "newcomers stand behind those who had a place";
  const Tokens in_order{a.token(), b.token(), c.token(), late.token()};
  EXPECT_EQ(queued_tokens(), in_order);
}

TEST_F(QueueOrder, AWaiterWhoseInboxWasLostInItsTurnGetsItsPlaceBack) {
  hold();
  Waiter a(store, key, "a"), b(store, key, "b");
  a.enqueue();
  b.enqueue();
  kill_inboxes();
  b.subscribe();
  ASSERT_TRUE(eventually([&] { return listeners(inbox_of(a)) == 0; }));
  ASSERT_EQ(release(), ReleaseOutcome::released);
  ASSERT_EQ(holder(), b.token());
  Waiter late(store, key, "late");
  late.subscribe();
  late.enqueue();
  a.subscribe();
  EXPECT_EQ(only<Seat::Queued>(a.ask()).place.ahead, 0U);
}

TEST_F(QueueOrder, ARepeatedFirstQuestionFindsItsOldArrival) {
  hold();
  const RawReply first = ask({.token = "w"});
  ASSERT_EQ(first.elements.size(), 7U) << to_string(first);
  const RawReply other = ask({.token = "x"});
  const RawReply again = ask({.token = "w"});
  ASSERT_EQ(again.elements.size(), 7U) << to_string(again);
  EXPECT_EQ(again.elements[5].text, first.elements[5].text);
  EXPECT_EQ(other.elements.at(4).integer, 1);
  EXPECT_EQ(again.elements[4].integer, 0);
  EXPECT_EQ(truth.command({"ZCARD", queue}).integer, 2);
}

TEST_F(QueueOrder, AnArrivalThatTheServerWritesWithAnExponentIsAnsweredInDigits) {
  hold();
  const RawAsk w{.token = "w"};
  plant(w.member(), "100000000000000000");
  const RawReply again = ask(w);
  ASSERT_EQ(again.elements.size(), 7U) << to_string(again);
  EXPECT_EQ(again.elements[5].text, "100000000000000000");
}

TEST_F(QueueOrder, AnArrivalInManyZerosComesBackAsItWasCarried) {
  hold();
  // Newer servers write such scores as 1.7e+15.
  for (const std::string round : {"1700000000000000", "1760000000000000", "1760000000100000"}) {
    const RawAsk w{.token = "w" + round, .arrival = round};
    const RawReply reply = ask(w);
    ASSERT_EQ(reply.elements.size(), 7U) << to_string(reply);
    EXPECT_EQ(reply.elements[5].text, round);
    const RawReply first_again = ask({.token = w.token});
    EXPECT_EQ(first_again.elements.at(5).text, round);
  }
  const Tokens in_order{"w1700000000000000", "w1760000000000000", "w1760000000100000"};
  EXPECT_EQ(queued_tokens(), in_order);
}

TEST_F(QueueOrder, ATryNeverOvertakesALiveWaiterButHandsItTheFreeLease) {
  hold();
  Waiter a(store, key, "a", 20s);
  a.enqueue();
  truth.del(key);  // as if it had expired
  const Busy busy = busy_try();
  EXPECT_EQ(busy.holder, "host:1 a");
  EXPECT_LE(busy.remaining.value_or(1h), 20s);
  EXPECT_GT(busy.remaining.value_or(0ms), 10s);
  EXPECT_EQ(holder(), a.token());
  const auto grant = a.hears();
  ASSERT_TRUE(grant);
  EXPECT_EQ(static_cast<std::uint64_t>(grant->fence), fence());
  EXPECT_TRUE(members().empty());
}

TEST_F(QueueOrder, ALaterWaiterNeverOvertakesButHandsTheFreeLeaseToTheFirst) {
  hold();
  Waiter a(store, key, "a"), b(store, key, "b"), c(store, key, "c");
  a.enqueue();
  b.enqueue();
  truth.del(key);
  c.subscribe();
  const Seat::Queued queued = only<Seat::Queued>(c.ask());  // its first question
  EXPECT_EQ(queued.place.ahead, 1U);
  EXPECT_EQ(queued.busy.holder, "host:1 a");
  EXPECT_EQ(holder(), a.token());
  EXPECT_TRUE(a.hears());
  const Tokens rest{b.token(), c.token()};
  EXPECT_EQ(queued_tokens(), rest);
}

TEST_F(QueueOrder, AWaiterWhoseTurnItIsTakesTheFreeLeaseAndThoseBehindStay) {
  hold();
  Waiter a(store, key, "a"), b(store, key, "b"), c(store, key, "c");
  a.enqueue();
  b.enqueue();
  c.enqueue();
  truth.del(key);
  Monitor monitor(server.tcp());
  const Granted granted = only<Granted>(a.ask());
  EXPECT_EQ(holder(), a.token());
  EXPECT_EQ(static_cast<std::uint64_t>(granted.fence), fence());
  const Tokens rest{b.token(), c.token()};
  EXPECT_EQ(queued_tokens(), rest);
  for (const MonitorLine& line : monitor.lines()) EXPECT_NE(line.name(), "PUBLISH") << line.line;
}

TEST_F(QueueOrder, TheFirstQuestionForAFreeLeaseTakesItAndLeavesNothingInTheQueue) {
  Waiter a(store, key, "a");
  a.subscribe();
  only<Granted>(a.ask());
  EXPECT_EQ(holder(), a.token());
  EXPECT_FALSE(truth.exists(queue));
  EXPECT_FALSE(truth.exists(seen));
}

TEST_F(QueueOrder, AskingBesideAGrantAnswersTheSameFence) {
  hold();
  Waiter a(store, key, "a");
  a.enqueue();
  release();
  const Granted granted = only<Granted>(a.ask());
  const auto grant = a.hears();
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->fence, granted.fence);
  EXPECT_FALSE(truth.exists(queue));
}

TEST_F(QueueOrder, AForeignHolderIsToldAsSuch) {
  truth.command({"SET", key, "of-another-library", "PX", "60000"});
  Waiter a(store, key, "a");
  EXPECT_TRUE(a.enqueue().place.foreign);
}

TEST_F(QueueOrder, AHolderWithoutExpiryIsBusyWithoutRemainingAndIsNotStolen) {
  truth.set(key, "for-ever");
  Waiter a(store, key, "a");
  EXPECT_FALSE(a.enqueue().place.remaining.has_value());
  EXPECT_EQ(holder(), "for-ever");
}

}  // namespace
}  // namespace redlease
