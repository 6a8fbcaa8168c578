// What the server did while many waited, read from its append-only file; and waiting over TLS.
#include "history.hpp"
#include "queue_support.hpp"
#include "tls_redis_server.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class QueueHistory : public QueueFaults {
 protected:
  QueueHistory() : QueueFaults(keep_a_history()) {}
};

TEST_F(QueueHistory, HasNoTwoHoldersThroughCutsStopsForeignersAndADeletedQueue) {
  Client one(server.url_unix(), {.name = "one"}), two(server.url_tcp(), {.max_inboxes = 2, .name = "two"});
  std::atomic<int> turns{0};
  Crew crew(8, [&](int seat) {
    auto lease = (seat % 2 == 0 ? one : two).acquire(key, patient_for(500ms, 400ms)).lease();
    if (lease && stay(room, *std::move(lease), seat * 200us)) ++turns;
  });
  std::jthread foreigner([&](const std::stop_token& over) {
    RawClient other(server.unix_socket());
    while (!over.stop_requested()) {
      other.command({"SET", key, "foreign", "NX", "PX", "5"});
      std::this_thread::sleep_for(3ms);
    }
  });
  const Deadline end = deadline_in(4s);
  for (int round = 0; LeaseClock::now() < end; ++round) {
    std::this_thread::sleep_for(50ms);
    kill_named(round % 2 == 0 ? "one" : "two", round % 3 == 0 ? "normal" : "pubsub");
    if (round % 10 == 9) raw.del(queue_of(key));
  }
  crew.end();
  foreigner = {};
  EXPECT_GE(turns, 100);
  expect_exclusion();
  const History history = judge(read_history(server.dir()), key);
  EXPECT_EQ(history.flaws, std::vector<std::string>{});
  EXPECT_GE(history.handed_over, 50U);
  EXPECT_GT(history.grants, history.ours) << "the foreigner never got it";
}

class QueueOverTls : public ::testing::TestWithParam<std::size_t> {
 protected:
  ClientOptions options() const {
    ClientOptions options = server_.options();
    options.max_inboxes = GetParam();
    return options;
  }
  const TlsRedisServer server_;
  RawClient raw_{server_.tcp()};
  Client client_{server_.url(), options()};
  Room room_;
};

TEST_P(QueueOverTls, TurnsAreTakenAndWaitersAreWokenInsteadOfAsking) {
  constexpr int count = 6;
  Lease first = taken(client_, "turn");
  std::atomic<int> got{0};
  std::vector<std::jthread> crew;
  for (int i = 0; i < count; ++i) {
    crew.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        auto lease = client_.acquire("turn", patient_for(30s, 60s)).lease();
        if (lease && stay(room_, *std::move(lease))) ++got;
      }
    });
  }
  ASSERT_TRUE(eventually([&] { return raw_.command({"ZCARD", queue_of("turn")}).integer == count; }, 20s));
  const Deadline released = LeaseClock::now();
  EXPECT_EQ(first.release(), ReleaseOutcome::released);
  crew.clear();
  EXPECT_EQ(got, count * 20);
  // With a ttl of 30 s they would ask again only after seconds.
  EXPECT_LE(since(released), 4s);
  EXPECT_EQ(room_.overlaps(), 0);
  EXPECT_EQ(room_.regressions(), 0);
  EXPECT_FALSE(raw_.exists(queue_of("turn")));
}

INSTANTIATE_TEST_SUITE_P(Inboxes, QueueOverTls, ::testing::Values(64, 1, 0), ::testing::PrintToStringParamName());

}  // namespace
}  // namespace redlease
