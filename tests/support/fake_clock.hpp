#pragma once
#include <atomic>
#include <chrono>

#include "redlease/clock.hpp"

namespace redlease::testing_support {

// Stands still until it is moved. Any thread may move or read it.
class FakeClock final : public Clock {
 public:
  Deadline now() const noexcept override { return Deadline(LeaseClock::duration(ticks_.load())); }
  void advance(LeaseClock::duration d) noexcept { ticks_ += d.count(); }

 private:
  std::atomic<LeaseClock::rep> ticks_{LeaseClock::duration(std::chrono::hours(1)).count()};
};

}  // namespace redlease::testing_support
