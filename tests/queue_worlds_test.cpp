#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "queue_world.hpp"

namespace redlease {
namespace {

using testing_support::QueueTally;
using testing_support::QueueWorld;

constexpr std::uint64_t ordinary = 21'000;

std::string trace_of(std::uint64_t seed, std::size_t lines) {
  QueueTally tally;
  std::vector<std::string> trace;
  QueueWorld(seed, tally, &trace).run();
  std::string text;
  for (std::size_t i = trace.size() - std::min(trace.size(), lines); i < trace.size(); ++i) text += trace[i] + '\n';
  return text;
}

// REDLEASE_QUEUE_SEED=n: that world alone, with all that happens in it. REDLEASE_QUEUE_WORLDS=n: so many of them.
TEST(QueueWorlds, NoTwoHoldAtOnceTurnsAreKeptTheFreeIsTakenAndNothingIsLeftBehind) {
  if (const char* one = std::getenv("REDLEASE_QUEUE_SEED")) {
    const std::uint64_t seed = std::strtoull(one, nullptr, 10);
    QueueTally tally;
    std::cout << trace_of(seed, SIZE_MAX);
    EXPECT_EQ(QueueWorld(seed, tally).run(), "");
    return;
  }
  const char* const many = std::getenv("REDLEASE_QUEUE_WORLDS");
  const std::uint64_t worlds = many == nullptr ? ordinary : std::strtoull(many, nullptr, 10);
  QueueTally t;
  for (std::uint64_t seed = 0; seed < worlds; ++seed) {
    const std::string broken = QueueWorld(seed, t).run();
    ASSERT_EQ(broken, "") << "REDLEASE_QUEUE_SEED=" << seed << ", which ends so:\n" << trace_of(seed, 60);
  }
  if (many != nullptr) return;
  // It must all have happened, and often.
  const std::uint64_t often[] = {
      t.asked,          t.placed,   t.granted,    t.heard,    t.believed,    t.not_believed,  t.hinted,
      t.kept,           t.held,     t.too_late,   t.expired,  t.renewed,     t.gave_up,       t.stopped,
      t.left,           t.doubtful, t.too_old,    t.retired,  t.withdrawn,   t.not_withdrawn, t.crashes,
      t.half_open,      t.stalls,   t.cuts,       t.refused,  t.wakes_lost,  t.wakes_late,    t.wakes_twice,
      t.inboxes_killed, t.no_inbox, t.no_publish, t.no_count, t.queues_lost, t.pauses,        t.restarts,
      t.forgotten,      t.barged,   t.passed_by,  t.steps,    t.quiet};
  for (std::size_t i = 0; i < std::size(often); ++i) EXPECT_GT(often[i], 500U) << i;
  RecordProperty("events", std::to_string(t.events));
}

}  // namespace
}  // namespace redlease
