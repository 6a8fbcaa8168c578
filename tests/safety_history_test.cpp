// The judge of the other safety tests, judged: each rule refuses a history that breaks it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "history.hpp"

namespace redlease {
inline namespace v0 {
namespace {

const std::vector<AofCommand> fence_5{{"MULTI"}, {"SET", "k:{k}lease:meta", "5 a 1 host:1 ", "PXAT", "9000"}};
const AofCommand grant_a{"SET", "k", "a", "PXAT", "1000"};
const AofCommand grant_b{"SET", "k", "b", "PXAT", "2000"};

void expect_flaw(const std::vector<AofCommand>& commands, const std::string& what) {
  const auto flaws = judge(commands, "k", "r").flaws;
  ASSERT_EQ(flaws.size(), 1U) << "expected: " << what;
  EXPECT_NE(flaws[0].find(what), std::string::npos) << flaws[0];
}

TEST(HistoryJudge, AcceptsAndCountsWhatIsRight) {
  const History history = judge({{"SELECT", "0"},
                                 {"MULTI"},
                                 {"SET", "k:{k}lease:meta", "5 a 1 host:1 ", "PXAT", "9000"},
                                 grant_a,
                                 {"EXEC"},
                                 {"HSET", "r", "fence", "5", "value", "a"},
                                 {"PEXPIREAT", "k", "1500"},
                                 {"DEL", "k"},
                                 grant_b},
                                "k", "r");
  EXPECT_EQ(history.flaws, std::vector<std::string>{});
  EXPECT_EQ(history.grants, 2U);
  EXPECT_EQ(history.ours, 1U);
  EXPECT_EQ(history.renewals, 1U);
  EXPECT_EQ(history.removals, 1U);
  EXPECT_EQ(history.writes, 1U);
}

TEST(HistoryJudge, SeesAGrantWhileAnotherHoldsIt) { expect_flaw({grant_a, grant_b}, "granted to b while a held it"); }

TEST(HistoryJudge, AcceptsAHandOverToTheFirstInTheQueueAlone) {
  const std::string queue = "k:{k}lease:queue";
  const std::vector<AofCommand> waiting{grant_a,
                                        {"ZADD", queue, "NX", "7", "b 30 9 0 - host:1 "},
                                        {"ZADD", queue, "NX", "8", "c 30 9 0 - host:1 "},
                                        {"MULTI"},
                                        {"ZPOPMIN", queue}};
  auto right = waiting;
  right.push_back(grant_b);
  const History history = judge(right, "k", "r");
  EXPECT_EQ(history.flaws, std::vector<std::string>{});
  EXPECT_EQ(history.handed_over, 1U);
  auto wrong = waiting;
  wrong.push_back({"SET", "k", "c", "PXAT", "2000"});
  expect_flaw(wrong, "granted to c while a held it");
  wrong = waiting;
  wrong.insert(wrong.end(), {{"EXEC"}, grant_b});
  expect_flaw(wrong, "granted to b while a held it");
  expect_flaw({{"ZPOPMIN", queue}}, "an empty queue");
}

TEST(HistoryJudge, SeesALeaseWithoutAnExpiry) {
  expect_flaw({{"SET", "k", "a"}}, "without an expiry");
  expect_flaw({grant_a, {"PERSIST", "k"}}, "changed by PERSIST");
}

TEST(HistoryJudge, SeesARenewalThatRevivesOrShortens) {
  expect_flaw({{"PEXPIREAT", "k", "1000"}}, "revived");
  expect_flaw({grant_a, {"PEXPIREAT", "k", "999"}}, "shortened it by 1 ms");
}

TEST(HistoryJudge, SeesAFenceThatDoesNotGrowOrIsAnothers) {
  auto history = fence_5;
  history.insert(history.end(), {grant_a, {"DEL", "k"}});
  history.push_back({"SET", "k:{k}lease:meta", "5 b 1 host:1 ", "PXAT", "9000"});
  expect_flaw(history, "fence 5 does not grow");
  history = fence_5;
  history.push_back(grant_b);
  expect_flaw(history, "the fence of a came with the token b");
}

TEST(HistoryJudge, SeesAStaleWriteAndAFenceOfTwo) {
  const AofCommand write{"HSET", "r", "fence", "5", "value", "a"};
  expect_flaw({write, {"HSET", "r", "fence", "4", "value", "b"}}, "fence 4 after 5");
  expect_flaw({write, {"HSET", "r", "fence", "5", "value", "b"}}, "two tokens");
}

}  // namespace
}  // namespace v0
}  // namespace redlease
