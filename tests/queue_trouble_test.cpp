// Servers in trouble: nothing is done by halves, and nobody loses its place.
#include <thread>

#include "queue_at_server.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class QueueTrouble : public QueueTest {
 protected:
  void expect_not_ready(const Error& error, const std::string& word) {
    EXPECT_EQ(error.code, Errc::not_ready) << error.detail;
    EXPECT_TRUE(contains(error.detail, word)) << error.detail;
  }
  Error refused_try() {
    const Acquisition outcome = store.acquire({.key = key, .token = "t", .ttl = 30s, .holder = "host:2"}, ample());
    if (const auto* error = std::get_if<Error>(&outcome)) return *error;
    throw std::runtime_error("the try was answered");
  }
  // While the server refuses to write: release and break do nothing, a waiter that asks is told, and nobody is lost.
  template <class Refuse, class Allow>
  void expect_nothing_is_changed_while(Refuse refuse, Allow allow, const std::string& word) {
    hold();
    Waiter a(store, key, "a"), b(store, key, "b"), late(store, key, "late");
    a.enqueue();
    b.enqueue();
    late.subscribe();
    const std::vector<std::string> before = members();
    refuse();
    const Released released = store.release(key, "holder", ample());
    const auto broken = store.break_lease(key, ample());
    const Seat::Answer again = a.ask();
    const Seat::Answer first = late.ask();
    const std::string still = holder();
    const std::vector<std::string> after = members();
    allow();
    EXPECT_EQ(released.outcome, ReleaseOutcome::unavailable);
    expect_not_ready(released.error, word);
    ASSERT_FALSE(broken.has_value());
    expect_not_ready(broken.error(), word);
    for (const Seat::Answer* answer : {&again, &first}) {
      const auto* error = std::get_if<Error>(answer);
      ASSERT_NE(error, nullptr) << describe(*answer);
      expect_not_ready(*error, word);
    }
    EXPECT_EQ(still, "holder");
    EXPECT_EQ(after, before);
    EXPECT_EQ(release(), ReleaseOutcome::released);
    EXPECT_EQ(holder(), a.token());
    EXPECT_TRUE(a.hears());
  }
};

TEST_F(QueueTrouble, AReplicaHandsNothingOverAndLosesNobody) {
  expect_nothing_is_changed_while(
      [&] {
        truth.command({"REPLICAOF", "127.0.0.1", "1"});
      },
      [&] {
        truth.command({"REPLICAOF", "NO", "ONE"});
      },
      "READONLY");
}

TEST_F(QueueTrouble, AServerWithTooFewReplicasHandsNothingOverAndLosesNobody) {
  expect_nothing_is_changed_while([&] { truth.config_set("min-replicas-to-write", "1"); },
                                  [&] { truth.config_set("min-replicas-to-write", "0"); }, "NOREPLICAS");
}

TEST_F(QueueTrouble, WithoutMemoryAReleaseStillHandsOver) {
  hold();
  Waiter a(store, key, "a"), b(store, key, "b");
  a.enqueue();
  b.enqueue();
  truth.config_set("maxmemory", "1");
  const ReleaseOutcome first = release();
  const std::string second_holder = holder();
  const ReleaseOutcome second = release(a.token());
  const std::string third_holder = holder();
  const ReleaseOutcome third = release(b.token());
  truth.config_set("maxmemory", "0");
  EXPECT_EQ(first, ReleaseOutcome::released);
  EXPECT_EQ(second_holder, a.token());
  EXPECT_EQ(second, ReleaseOutcome::released);
  EXPECT_EQ(third_holder, b.token());
  EXPECT_EQ(third, ReleaseOutcome::released);
  EXPECT_FALSE(truth.exists(key));
  EXPECT_TRUE(a.hears());
  EXPECT_TRUE(b.hears());
}

TEST_F(QueueTrouble, WithoutMemoryATryIsNotReadyAndAWaiterKeepsItsPlace) {
  hold();
  Waiter a(store, key, "a"), late(store, key, "late");
  a.enqueue();
  late.subscribe();
  truth.config_set("maxmemory", "1");
  const Seat::Answer again = a.ask();
  const Seat::Answer first = late.ask();
  const std::vector<std::string> after = members();
  late.seat().leave(ample());
  truth.command({"DEL", key, queue});
  const Error refused = refused_try();
  truth.config_set("maxmemory", "0");
  for (const Seat::Answer* answer : {&again, &first}) {
    const auto* error = std::get_if<Error>(answer);
    ASSERT_NE(error, nullptr) << describe(*answer);
    expect_not_ready(*error, "OOM");
  }
  EXPECT_EQ(after.size(), 1U);
  expect_not_ready(refused, "OOM");
  EXPECT_FALSE(truth.exists(key));
}

TEST_F(QueueTrouble, AnAskThatTheServerReadsTooLateGrantsNothingAndQueuesNothing) {
  const std::string late = seconds_ago(1);
  const RawReply free = ask({.token = "w", .not_after = late});
  EXPECT_EQ(free.elements.at(0).integer, -1);
  EXPECT_FALSE(truth.exists(key));
  EXPECT_FALSE(truth.exists(meta));
  hold();
  const RawReply busy = ask({.token = "w", .not_after = late});
  EXPECT_EQ(busy.elements.at(0).integer, -1);
  EXPECT_FALSE(truth.exists(queue));
  Waiter a(store, key, "a");
  a.enqueue();
  truth.del(key);
  EXPECT_EQ(ask({.token = "w", .not_after = late}).elements.at(0).integer, -1);
  EXPECT_FALSE(truth.exists(key));
  EXPECT_EQ(members().size(), 1U);
  EXPECT_EQ(ask({.token = "w", .not_after = std::to_string(server_now() + 60'000'000)}).elements.at(0).integer, 0);
}

// Asks with little time through something that delays it until the question is too old.
template <class Delay, class GoOn>
void ask_too_late(Waiter& waiter, Delay delay, GoOn go_on) {
  delay();
  const Seat::Answer answer = waiter.seat().ask(Ask::queue, lifetime, {deadline_in(50ms), {}});
  ASSERT_TRUE(std::holds_alternative<Seat::InDoubt>(answer)) << describe(answer);
  const Deadline spent_by = waiter.seat().spent_by();
  ASSERT_LT(spent_by, deadline_in(5s));
  std::this_thread::sleep_for(std::max<LeaseClock::duration>(spent_by - LeaseClock::now(), {}));
  go_on();
}

TEST_F(QueueTrouble, AnAskBehindAStoppedServerQueuesAndGrantsNothing) {
  hold();
  Waiter a(store, key, "a");
  a.subscribe();
  only<Busy>(a.ask(Ask::once));
  const Waiter other(store, key, "other");
  ask_too_late(
      a, [&] { server.stop(); }, [&] { server.cont(); });
  EXPECT_EQ(truth.command({"PING"}).text, "PONG");
  EXPECT_TRUE(members().empty());
  // The next question goes behind the old one on the same connection, so that was answered.
  EXPECT_EQ(only<Seat::Queued>(a.ask()).place.ahead, 0U);
  EXPECT_LE(a.seat().spent_by(), LeaseClock::now());
}

TEST_F(QueueTrouble, AnAskThatWasDelayedOnTheWayQueuesAndGrantsNothing) {
  FaultProxy proxy(server.tcp());
  RedisStore behind(parse_endpoint(proxy.url()));
  hold();
  Waiter a(behind, key, "a");
  a.subscribe();
  only<Busy>(a.ask(Ask::once));  // the newest connection is now the one for questions
  const std::uint64_t before = proxy.newest().down;
  ask_too_late(
      a, [&] { proxy.withhold_requests(); }, [&] { proxy.heal(); });
  ASSERT_TRUE(eventually([&] { return proxy.newest().down > before; })) << "it was answered";
  EXPECT_TRUE(members().empty());
  release();
  EXPECT_FALSE(truth.exists(key));
}

TEST_F(QueueTrouble, AnAskWhoseAnswerIsLateKeepsItsPlaceAndTheNextFindsIt) {
  FaultProxy proxy(server.tcp());
  RedisStore behind(parse_endpoint(proxy.url()));
  hold();
  Waiter a(behind, key, "a"), b(store, key, "b");
  a.subscribe();
  only<Busy>(a.ask(Ask::once));
  proxy.withhold_replies();
  const Seat::Answer answer = a.seat().ask(Ask::queue, lifetime, {deadline_in(300ms), {}});
  ASSERT_TRUE(std::holds_alternative<Seat::InDoubt>(answer)) << describe(answer);
  b.enqueue();
  proxy.heal();
  EXPECT_EQ(only<Seat::Queued>(a.ask()).place.ahead, 0U);
  const Tokens in_order{a.token(), b.token()};
  EXPECT_EQ(queued_tokens(), in_order);
}

TEST_F(QueueTrouble, AfterAScriptFlushAtAnyMomentAllGoesOn) {
  const auto flush = [&] { EXPECT_EQ(truth.command({"SCRIPT", "FLUSH"}).text, "OK"); };
  flush();
  hold();
  Waiter a(store, key, "a"), b(store, key, "b"), c(store, key, "c");
  flush();
  a.enqueue();
  b.enqueue();
  flush();
  c.enqueue();
  flush();
  EXPECT_EQ(release(), ReleaseOutcome::released);
  EXPECT_TRUE(a.hears());
  flush();
  EXPECT_EQ(c.seat().leave(ample()).outcome, ReleaseOutcome::not_held);
  flush();
  EXPECT_TRUE(store.break_lease(key, ample()).value());
  EXPECT_TRUE(b.hears());
  flush();
  EXPECT_EQ(store.inspect(key, ample()).value().waiters, 0U);
}

TEST_F(QueueTrouble, WithoutScriptLoadAllWorks) {
  RedisServer old({"rename-command SCRIPT \"\""});
  RedisStore at_old(parse_endpoint(old.url_tcp()));
  ASSERT_TRUE(std::holds_alternative<Granted>(at_old.acquire({.key = key, .token = "first", .ttl = 60s}, ample())));
  Waiter a(at_old, key, "a"), b(at_old, key, "b");
  a.enqueue();
  EXPECT_EQ(b.enqueue().place.ahead, 1U);
  EXPECT_EQ(at_old.release(key, "first", ample()).outcome, ReleaseOutcome::released);
  EXPECT_TRUE(a.hears());
  EXPECT_EQ(at_old.inspect(key, ample()).value().label, "a");
  EXPECT_EQ(b.seat().leave(ample()).outcome, ReleaseOutcome::not_held);
  EXPECT_EQ(at_old.release(key, a.token(), ample()).outcome, ReleaseOutcome::released);
}

}  // namespace
}  // namespace redlease
