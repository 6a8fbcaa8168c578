// Exclusion among processes, by the clock they share and by the server's own order.
#include <gtest/gtest.h>

#include <string>

#include "contest.hpp"
#include "history.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "support/sleepless.hpp"

namespace redlease {
inline namespace v0 {
namespace {

constexpr int contenders = 8;

std::string joined(const std::vector<std::string>& flaws) {
  std::string text;
  for (std::size_t i = 0; i < flaws.size() && i < 10; ++i) text += flaws[i] + '\n';
  return text;
}

class SafetyAmongProcesses : public ::testing::Test {
 protected:
  // Ours in the first seats, plain SET NX PX clients in the rest.
  Contest start(int ours) {
    return Contest(contenders, [this, ours](int seat) {
      if (seat < ours) {
        contend(server.url_unix(), terms, board, seat);
      } else {
        contend_in_plain_redis(server.unix_socket(), terms, board, seat);
      }
    });
  }

  bool all_did(int wanted) { return board.least_done(contenders) >= wanted; }

  void await(const Contest& contest, int wanted) {
    eventually([&] { return all_did(wanted) || contest.anyone_ended(); }, patience());
    EXPECT_TRUE(all_did(wanted)) << "done: " << board.least_done(contenders);
  }

  void expect_exclusion(Contest& contest) {
    EXPECT_EQ(contest.finish(board), "");
    EXPECT_EQ(board.count(Board::overlaps), 0) << "two holders at once";
    EXPECT_EQ(board.count(Board::robbed), 0) << "a lease was gone before its deadline";
    EXPECT_EQ(board.count(Board::refused_in_time), 0) << "a fence was refused though its holder was in time";
    EXPECT_GT(board.count(Board::busy), contenders) << "there was no contention";

    RawClient raw(server.unix_socket());
    EXPECT_TRUE(eventually([&] { return !raw.exists(terms.key); }, terms.ttl + Millis(1000))) << "left behind";
    server.terminate();
    history = judge(read_history(server.dir()), terms.key, terms.resource);
    EXPECT_TRUE(history.flaws.empty()) << history.flaws.size() << " flaws:\n" << joined(history.flaws);
    EXPECT_GE(history.grants, total_done());
    EXPECT_GE(history.removals + 1, history.grants);
  }

  std::size_t total_done() {
    std::size_t total = 0;
    for (int seat = 0; seat < contenders; ++seat) total += static_cast<std::size_t>(board.done(seat));
    return total;
  }

  // Until each process has made its sections and enough harm was done where it matters.
  void storm(Contest& contest, int wanted) {
    const Deadline limit = deadline_in(patience());
    while (!all_did(wanted) || stale_pauses < 5 || kills < 10 ||
           (!terms.resource.empty() && board.count(Board::refused_late) == 0)) {
      ASSERT_LT(LeaseClock::now(), limit)
          << "done: " << board.least_done(contenders) << ", paused beyond the ttl: " << stale_pauses
          << ", killed: " << kills << ", stale writes refused: " << board.count(Board::refused_late);
      if (contest.pause_inside(board, 2 * terms.ttl) > terms.ttl) ++stale_pauses;
      kills += contest.kill_inside(board) ? 1 : 0;
      const auto goal = board.least_done(contenders) + wanted / 50;
      eventually([&] { return all_did(wanted) || board.least_done(contenders) >= goal; }, Millis(200));
    }
  }

  RedisServer server{keep_a_history()};
  Board board;
  Terms terms;
  History history;
  int stale_pauses{0};
  int kills{0};
};

TEST_F(SafetyAmongProcesses, UndisturbedTheyNeverMeetInside) {
  terms.ttl = Millis(30'000);
  terms.op_timeout = Millis(5'000);
  terms.resource = "ledger";
  Contest contest = start(contenders);
  await(contest, sections() / 2);
  expect_exclusion(contest);
  EXPECT_EQ(board.page().violations(), 0U);
  EXPECT_EQ(board.count(Board::refused_late), 0);
  EXPECT_EQ(history.ours, history.grants);
  EXPECT_GT(history.renewals, 0U);
  EXPECT_EQ(history.writes, history.grants);
}

TEST_F(SafetyAmongProcesses, PausedAndKilledInsideOnlyTheTimeIsLostAndTheFenceRefusesTheStale) {
  terms.resource = "ledger";
  Contest contest = start(contenders);
  storm(contest, sections());
  expect_exclusion(contest);
  EXPECT_GT(board.count(Board::refused_late), 0);
  EXPECT_EQ(history.ours, history.grants);
}

TEST_F(SafetyAmongProcesses, PlainSetNxPxClientsAreExcludedAndExclude) {
  terms.ttl = Millis(30'000);
  terms.op_timeout = Millis(5'000);
  Contest contest = start(contenders / 2);
  await(contest, sections() / 2);
  expect_exclusion(contest);
  EXPECT_EQ(board.page().violations(), 0U);
  EXPECT_GT(history.ours, 0U);
  EXPECT_GT(history.grants, history.ours);
}

TEST_F(SafetyAmongProcesses, PlainClientsAndOursPausedAndKilledInsideStillExcludeEachOther) {
  Contest contest = start(contenders / 2);
  storm(contest, sections() / 2);
  expect_exclusion(contest);
  EXPECT_GT(history.ours, 0U);
  EXPECT_GT(history.grants, history.ours);
}

}  // namespace
}  // namespace v0
}  // namespace redlease
