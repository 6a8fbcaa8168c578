#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "world.hpp"

namespace redlease {
namespace {

using testing_support::Tally;
using testing_support::World;

constexpr std::uint64_t ordinary = 25'000;

std::string trace_of(std::uint64_t seed, std::size_t lines) {
  Tally tally;
  std::vector<std::string> trace;
  World(seed, tally, &trace).run();
  std::string text;
  for (std::size_t i = trace.size() - std::min(trace.size(), lines); i < trace.size(); ++i) text += trace[i] + '\n';
  return text;
}

// REDLEASE_WORLD_SEED=n: that world alone, with all that happens in it.
TEST(Worlds, NoTwoHoldAtOnceEveryLossIsSignalledAndWhatIsAnsweredIsKept) {
  if (const char* one = std::getenv("REDLEASE_WORLD_SEED")) {
    const std::uint64_t seed = std::strtoull(one, nullptr, 10);
    Tally tally;
    std::cout << trace_of(seed, SIZE_MAX);
    EXPECT_EQ(World(seed, tally).run(), "");
    return;
  }
  Tally tally;
  for (std::uint64_t seed = 0; seed < ordinary; ++seed) {
    const std::string broken = World(seed, tally).run();
    ASSERT_EQ(broken, "") << "REDLEASE_WORLD_SEED=" << seed << ", which ends so:\n" << trace_of(seed, 30);
  }
  // It must all have happened, and often.
  EXPECT_GT(tally.grants, ordinary);
  EXPECT_GT(tally.renewed, ordinary);
  EXPECT_GT(tally.late_counted, 1'000U);
  EXPECT_GT(tally.given_up, 1'000U);
  EXPECT_GT(tally.asked, 1'000U);
  EXPECT_GT(tally.stalls, 1'000U);
  EXPECT_GT(tally.cuts, 1'000U);
  EXPECT_GT(tally.refused, 1'000U);
  EXPECT_GT(tally.unsent, 1'000U);
  EXPECT_GT(tally.restarts, 1'000U);
  EXPECT_GT(tally.forgotten, 1'000U);
  EXPECT_GT(tally.no_connection, 1'000U);
  EXPECT_GT(tally.released, 1'000U);
  EXPECT_GT(tally.withdrawn, 1'000U);
  EXPECT_GT(tally.lost_while_stalled, 100U);
  for (const std::uint64_t lost : tally.lost) EXPECT_GT(lost, 100U);
  RecordProperty("events", std::to_string(tally.events));
}

}  // namespace
}  // namespace redlease
