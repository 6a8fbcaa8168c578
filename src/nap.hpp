#pragma once
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "redlease/clock.hpp"

namespace redlease {
inline namespace v0 {

// Sleeps until the limits are reached; a stop ends it at once.
inline void nap(const Limits& limits) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  while (!limits.stop.stop_requested()) {
    const auto left = limits.deadline - LeaseClock::now();
    if (left <= LeaseClock::duration::zero()) return;
    // In slices: a sleep of centuries overflows the library's clock arithmetic.
    never.wait_for(lock, limits.stop, std::min<LeaseClock::duration>(left, std::chrono::seconds(1)),
                   [] { return false; });
  }
}

}  // namespace v0
}  // namespace redlease
