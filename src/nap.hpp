#pragma once
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "redlease/clock.hpp"

namespace redlease {
inline namespace v0 {

// What is left until then, in a slice: a wait of centuries overflows the library's clock arithmetic.
inline LeaseClock::duration slice(Deadline until, Deadline now = LeaseClock::now()) noexcept {
  return std::min<LeaseClock::duration>(until - std::min(until, now), std::chrono::seconds(1));
}

// Sleeps until the limits are reached; a stop ends it at once.
inline void nap(const Limits& limits) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  while (!limits.stop.stop_requested()) {
    const auto left = slice(limits.deadline);
    if (left <= LeaseClock::duration::zero()) return;
    never.wait_for(lock, limits.stop, left, [] { return false; });
  }
}

}  // namespace v0
}  // namespace redlease
