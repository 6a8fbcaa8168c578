// Those who are dead or cannot hear are passed over, and nobody else.
#include "queue_at_server.hpp"

namespace redlease {
namespace {

using namespace testing_support;

constexpr std::size_t most = 512;  // that one call passes over

class QueueOfTheDead : public QueueTest {
 protected:
  // In the queue since a minute, alive for fifteen seconds from then.
  RawAsk stale(const std::string& token) { return {.token = token, .arrival = seconds_ago(60), .life = "15000"}; }
  void plant_dead(std::size_t number) {
    const std::string arrival = seconds_ago(60);
    std::vector<std::string> zadd{"ZADD", queue};
    for (std::size_t i = 0; i < number; ++i) {
      zadd.push_back(arrival);
      zadd.push_back(RawAsk{.token = "dead" + std::to_string(i), .life = "15000"}.member());
    }
    truth.command(zadd);
    truth.command({"PEXPIRE", queue, "3600000"});
  }
};

TEST_F(QueueOfTheDead, AStaleOneIsPassedOver) {
  hold();
  plant(stale("old").member(), seconds_ago(60));
  Waiter a(store, key, "a");
  EXPECT_EQ(a.enqueue().place.ahead, 1U);
  release();
  EXPECT_EQ(holder(), a.token());
  EXPECT_TRUE(members().empty());
}

TEST_F(QueueOfTheDead, OneThatHasWaitedLongAndStillAsksIsAlive) {
  hold();
  const RawAsk old = stale("old");
  ask(old);  // which says that it lives
  const double until = std::stod(truth.command({"HGET", seen, "old"}).text);
  EXPECT_NEAR(until, static_cast<double>(server_now()) / 1000 + 15'000, 5'000);
  EXPECT_GT(truth.pttl(seen), 0);
  Waiter a(store, key, "a");
  a.enqueue();
  release();
  EXPECT_EQ(holder(), "old");
  EXPECT_FALSE(truth.exists(seen)) << "its entry goes with it";
  const Tokens rest{a.token()};
  EXPECT_EQ(queued_tokens(), rest);
}

TEST_F(QueueOfTheDead, OneThatHasWaitedLongAndTakesTheFreeLeaseLeavesNoSignOfLife) {
  hold();
  const RawAsk old = stale("old");
  ask(old);
  ASSERT_TRUE(truth.exists(seen));
  truth.del(key);
  EXPECT_EQ(ask(old).elements.at(0).integer, 1);
  EXPECT_EQ(holder(), "old");
  EXPECT_FALSE(truth.exists(seen));
  EXPECT_FALSE(truth.exists(queue));
}

TEST_F(QueueOfTheDead, OneThatNoFenceIsLeftForStaysAndKeepsNobodyWaiting) {
  hold();
  Waiter a(store, key, "a", 30s, static_cast<std::uint64_t>(highest_fencing_token)), b(store, key, "b");
  a.enqueue();
  b.enqueue();
  release();
  EXPECT_FALSE(truth.exists(key));
  only<Granted>(b.ask());
  EXPECT_EQ(holder(), b.token());
  const Tokens rest{a.token()};
  EXPECT_EQ(queued_tokens(), rest);
  EXPECT_EQ(only<Error>((release(b.token()), a.ask())).code, Errc::server_error);
  a.seat().leave(ample());
}

TEST_F(QueueOfTheDead, OneThatHasStoppedAskingIsPassedOver) {
  hold();
  ask(stale("old"));
  truth.command({"HSET", seen, "old", std::to_string(server_now() / 1000 - 1)});
  Waiter a(store, key, "a");
  a.enqueue();
  release();
  EXPECT_EQ(holder(), a.token());
  EXPECT_FALSE(truth.exists(seen));
}

TEST_F(QueueOfTheDead, TheYoungWriteNoSignOfLife) {
  hold();
  for (int i = 0; i < 3; ++i) ask({.token = "young", .arrival = seconds_ago(1)});
  EXPECT_FALSE(truth.exists(seen));
}

TEST_F(QueueOfTheDead, WhoCannotBeReachedIsPassedOver) {
  hold();
  Waiter a(store, key, "a"), b(store, key, "b");
  a.enqueue();
  b.enqueue();
  const std::string inbox = inbox_of(a);
  kill_inboxes();
  ASSERT_TRUE(eventually([&] { return listeners(inbox) == 0; }));
  b.subscribe();
  release();
  EXPECT_EQ(holder(), b.token());
  EXPECT_TRUE(b.hears());
  EXPECT_TRUE(members().empty());
  EXPECT_TRUE(std::holds_alternative<Seat::Silence>(a.seat().listen(ample()))) << "and knows that it lost its inbox";
}

TEST_F(QueueOfTheDead, IfNobodyCanBeReachedTheLeaseIsFree) {
  hold();
  Waiter a(store, key, "a"), b(store, key, "b");
  a.enqueue();
  b.enqueue();
  const std::string of_a = inbox_of(a), of_b = inbox_of(b);
  kill_inboxes();
  ASSERT_TRUE(eventually([&] { return listeners(of_a) + listeners(of_b) == 0; }));
  release();
  EXPECT_FALSE(truth.exists(key));
  EXPECT_FALSE(truth.exists(queue));
  EXPECT_TRUE(free_try());
}

TEST_F(QueueOfTheDead, ATryBehindFewerDeadThanACallPassesOverGetsTheLease) {
  plant_dead(most - 1);
  EXPECT_TRUE(free_try());
  EXPECT_FALSE(truth.exists(queue));
}

TEST_F(QueueOfTheDead, ATryBehindAsManyDeadAsACallPassesOverIsBusyForNoTimeAndTheNextGoesOn) {
  plant_dead(2 * most + 22);
  EXPECT_EQ(busy_try().remaining, 0ms);
  EXPECT_EQ(members().size(), most + 22);
  EXPECT_FALSE(truth.exists(key));
  EXPECT_EQ(busy_try().remaining, 0ms);
  EXPECT_EQ(members().size(), 22U);
  EXPECT_TRUE(free_try());
  EXPECT_EQ(holder(), "passer-by");
}

TEST_F(QueueOfTheDead, AWaiterBehindAsManyDeadAsACallPassesOverIsToldToAskAgainAtOnceAndThenGetsTheLease) {
  plant_dead(most);
  Waiter a(store, key, "a");
  a.subscribe();
  const Seat::Queued queued = only<Seat::Queued>(a.ask());
  EXPECT_EQ(queued.place.remaining, 0ms);
  EXPECT_EQ(queued.place.ahead, 0U);
  only<Granted>(a.ask());
  EXPECT_EQ(holder(), a.token());
}

TEST_F(QueueOfTheDead, TheLastQuestionBehindAsManyDeadAsACallPassesOverIsBusyAndLeaves) {
  hold();
  Waiter a(store, key, "a");
  a.enqueue();
  plant_dead(most);
  truth.del(key);
  EXPECT_EQ(only<Busy>(a.ask(Ask::last)).remaining, 0ms);
  EXPECT_FALSE(truth.exists(queue));
}

TEST_F(QueueOfTheDead, AReleasePassesOverSoManyFreesTheLeaseAndTheLiveOneBehindIsNotOvertaken) {
  hold();
  plant_dead(most);
  Waiter a(store, key, "a");
  EXPECT_EQ(a.enqueue().place.ahead, most);
  EXPECT_EQ(release(), ReleaseOutcome::released);
  EXPECT_FALSE(truth.exists(key));
  const Tokens rest{a.token()};
  EXPECT_EQ(queued_tokens(), rest);
  EXPECT_EQ(busy_try().holder, "host:1 a");
  EXPECT_EQ(holder(), a.token());
}

TEST_F(QueueOfTheDead, WhatIsNoEntryIsDropped) {
  hold();
  const std::string arrival = seconds_ago(1);
  for (const std::string odd : {"", "garbage", "a b c d e f", "x 30000 60000 0 -", "x -1 60000 0 - host:1 x",
                                "x 1e9 60000 0 - host:1 x", "\xff\xfe"}) {
    plant(odd, arrival);
  }
  Waiter a(store, key, "a");
  a.enqueue();
  release();
  EXPECT_EQ(holder(), a.token());
  EXPECT_TRUE(members().empty());
}

TEST_F(QueueOfTheDead, AnEntryFromTheFutureCountsOnlyWithASignOfLife) {
  hold();
  const RawAsk early{.token = "early", .arrival = std::to_string(server_now() + 3'600'000'000)};
  plant(early.member(), early.arrival);
  release();
  EXPECT_FALSE(truth.exists(key));
  hold();
  ask(early);  // the clock was set back, and it still asks
  release();
  EXPECT_EQ(holder(), "early");
}

}  // namespace
}  // namespace redlease
