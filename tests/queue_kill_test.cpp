// Connections that are killed at the server while waiters take turns.
#include "queue_support.hpp"

namespace redlease {
namespace {

using namespace testing_support;

struct Boxes {
  std::size_t max_inboxes;
  const char* name;
};

class QueueAndKills : public QueueFaults, public ::testing::WithParamInterface<Boxes> {
 protected:
  static constexpr int waiters = 8;

  // One turn: a wait, which may end in nothing but a lease while connections die, and a short stay.
  void turn(Client& client) {
    auto lease = client.acquire(key, patient_for(2s, 20s, 600ms)).lease();
    if (lease) {
      stay(room, *std::move(lease), 300us);
    } else {
      ++failed;
    }
  }

  // Until each has had `turns`, `kill` is sent every so often.
  void kill_while_they_take_turns(const std::vector<std::string>& kill, Millis every, int turns) {
    {
      Client client(server.url_tcp(), {.max_inboxes = GetParam().max_inboxes});
      Crew crew(waiters, [&](int) { turn(client); });
      const Deadline limit = deadline_in(20s);
      while ((crew.least() < turns || kills <= waiters) && LeaseClock::now() < limit) {
        std::this_thread::sleep_for(every);
        const RawReply killed = raw.command(kill);
        if (killed.integer > 0) kills += static_cast<int>(killed.integer);
      }
      EXPECT_GE(crew.least(), turns);
      crew.end();
    }
    EXPECT_EQ(failed, 0);
    EXPECT_GT(kills, waiters);
    expect_exclusion();
    expect_nothing_left(3s);
    expect_no_queue();
  }

  std::atomic<int> failed{0};
  int kills{0};
};

TEST_P(QueueAndKills, OfInboxConnectionsStopNobody) {
  kill_while_they_take_turns({"CLIENT", "KILL", "TYPE", "pubsub"}, 20ms, 20);
}

TEST_P(QueueAndKills, OfAllConnectionsStopNobody) {
  kill_while_they_take_turns({"CLIENT", "KILL", "SKIPME", "yes", "USER", "default"}, 50ms, 10);
}

// Killed while it waits, the holder being somebody who releases later: is it heard without waiting for a heartbeat?
TEST_P(QueueAndKills, OfTheInboxBeforeTheReleaseAreHealedAtOnce) {
  Client holder(server.url_tcp());
  Client client(server.url_tcp(), {.max_inboxes = GetParam().max_inboxes});
  const Millis wait = best_of_three(at_once, [&] {
    Lease lease = taken(holder, key);
    Deadline got{};
    std::jthread waiter([&] {
      Lease mine = lease_of(client.acquire(key, patient_for(30s, 20s)));
      got = LeaseClock::now();
      mine.release();
    });
    EXPECT_TRUE(await_queued(1));
    EXPECT_GE(raw.command({"CLIENT", "KILL", "TYPE", "pubsub"}).integer, 1);
    EXPECT_TRUE(eventually([&] { return channels() == 1; }));
    const Deadline at = LeaseClock::now();
    lease.release();
    waiter.join();
    return std::chrono::duration_cast<Millis>(got - at);
  });
  EXPECT_LE(wait, at_once);
  expect_nothing_left(1s);
}

INSTANTIATE_TEST_SUITE_P(With, QueueAndKills,
                         ::testing::Values(Boxes{64, "InboxesOfTheirOwn"}, Boxes{4, "FourInboxes"},
                                           Boxes{0, "OneInboxForAll"}),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace redlease
