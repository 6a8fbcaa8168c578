// Exclusion while connections are cut at any byte.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>

#include "contest.hpp"
#include "history.hpp"
#include "support/fault_proxy.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "support/sleepless.hpp"

namespace redlease {
inline namespace v0 {
namespace {

constexpr int contenders = 6;

unsigned seed() {
  const char* wanted = std::getenv("REDLEASE_TEST_SEED");
  return wanted != nullptr ? static_cast<unsigned>(std::stoul(wanted)) : std::random_device{}();
}

// Somewhere in the handshake, a request or a reply, or never.
Faults random_faults(std::minstd_rand& random) {
  Faults faults;
  switch (random() % 4) {
    case 0: break;
    case 1: faults.up.cut_after = 1 + random() % 3'000; break;
    case 2: faults.down.cut_after = 1 + random() % 600; break;
    case 3:
      faults.up.cut_after = 1 + random() % 3'000;
      faults.down.delay = Millis(random() % 12);
      break;
  }
  return faults;
}

TEST(SafetyOnABadNetwork, CutAtAnyByteNobodyMeetsInsideAndNothingIsLeftBehind) {
  const unsigned start = seed();
  SCOPED_TRACE("REDLEASE_TEST_SEED=" + std::to_string(start));
  std::minstd_rand random(start);
  RedisServer server(keep_a_history());
  Board board;
  Terms terms;
  terms.ttl = Millis(120);
  terms.op_timeout = Millis(30);
  terms.resource = "ledger";
  FaultProxy proxy(server.tcp());
  proxy.on_new(random_faults(random));
  Contest contest(contenders, [&](int seat) { contend(proxy.url(), terms, board, seat); });

  const int wanted = sections() / 10;
  int cuts = 0;
  const bool done = eventually(
      [&] {
        proxy.on_new(random_faults(random));
        if (random() % 8 == 0) {
          proxy.drop_all();
          ++cuts;
        }
        const bool enough = board.least_done(contenders) >= wanted && board.count(Board::unknown) >= 20 && cuts >= 20;
        return enough || contest.anyone_ended();
      },
      patience());
  EXPECT_EQ(contest.finish(board), "");
  EXPECT_TRUE(done && board.least_done(contenders) >= wanted)
      << "done: " << board.least_done(contenders) << ", unknown: " << board.count(Board::unknown);

  EXPECT_EQ(board.count(Board::overlaps), 0) << "two holders at once";
  EXPECT_EQ(board.count(Board::robbed), 0) << "a lease was gone before its deadline";
  EXPECT_EQ(board.count(Board::refused_in_time), 0) << "a fence was refused though its holder was in time";
  EXPECT_GT(board.count(Board::busy), 0) << "there was no contention";
  EXPECT_GT(proxy.connections(), static_cast<std::size_t>(2 * contenders));
  EXPECT_TRUE(proxy.settled());

  RawClient raw(server.unix_socket());
  const auto only_what_may_stay = [&] {
    return raw.keys() == std::vector<std::string>{"contest:{contest}lease:meta", "ledger"};
  };
  EXPECT_TRUE(eventually(only_what_may_stay, terms.ttl + Millis(1'000)));
  EXPECT_GT(raw.pttl("contest:{contest}lease:meta"), 0);
  server.terminate();
  const History history = judge(read_history(server.dir()), terms.key, terms.resource);
  EXPECT_TRUE(history.flaws.empty()) << history.flaws.size() << " flaws, the first: " << history.flaws[0];
  EXPECT_EQ(history.ours, history.grants);
  EXPECT_GE(history.grants, static_cast<std::size_t>(wanted * contenders));
}

}  // namespace
}  // namespace v0
}  // namespace redlease
