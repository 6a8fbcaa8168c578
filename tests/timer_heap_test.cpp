#include "service/timer_heap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>

namespace redlease {
namespace {

Deadline at(std::int64_t ticks) { return Deadline(LeaseClock::duration(ticks)); }

TEST(TimerHeap, EmptyHasNoNext) {
  const TimerHeap heap;
  EXPECT_TRUE(heap.empty());
  EXPECT_EQ(heap.next(), Deadline::max());
}

TEST(TimerHeap, TheTopCarriesWhatWasPushedWithIt) {
  TimerHeap heap;
  heap.push({at(5), 1, 2});
  heap.push({at(3), 4, 5});
  EXPECT_EQ(heap.next(), at(3));
  EXPECT_EQ(heap.top().slot, 4U);
  EXPECT_EQ(heap.top().generation, 5U);
  heap.pop();
  EXPECT_EQ(heap.next(), at(5));
  heap.clear();
  EXPECT_TRUE(heap.empty());
}

// Few different times in some rounds, so that equal ones are common; sizes from none to hundreds.
TEST(TimerHeap, AgreesWithASortedMapThroughRandomPushesPopsAndSweeps) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
    const std::uint64_t times = seed % 3 == 0 ? 8 : 1'000'000;
    TimerHeap heap;
    std::multimap<Deadline, std::uint32_t> model;
    for (std::uint32_t step = 0; step < 2'000; ++step) {
      if (below(5) < 3) {
        const Deadline time = at(below(times));
        heap.push({time, step, 0});
        model.emplace(time, step);
      } else if (below(100) == 0) {
        const auto stale = [&](std::uint32_t slot) { return slot % 3 == seed % 3; };
        heap.sweep([&](const TimerHeap::Node& node) { return stale(node.slot); });
        std::erase_if(model, [&](const auto& entry) { return stale(entry.second); });
      } else if (!model.empty()) {
        const auto range = model.equal_range(heap.next());
        const auto top =
            std::find_if(range.first, range.second, [&](const auto& entry) { return entry.second == heap.top().slot; });
        ASSERT_NE(top, range.second) << "seed " << seed << ", step " << step;
        model.erase(top);
        heap.pop();
      }
      ASSERT_EQ(heap.size(), model.size()) << "seed " << seed << ", step " << step;
      ASSERT_EQ(heap.next(), model.empty() ? Deadline::max() : model.begin()->first) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace redlease
