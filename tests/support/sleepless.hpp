#pragma once
#include <chrono>
#include <thread>

#include "redlease/clock.hpp"

namespace redlease {
inline namespace v0 {

/// Whether `predicate` came true within the limit. For what another process or thread must get round to: assert on it.
template <class Predicate>
bool eventually(Predicate predicate, Millis limit = std::chrono::seconds(5)) {
  const Deadline deadline = deadline_in(limit);
  while (!predicate()) {
    if (LeaseClock::now() >= deadline) return false;
    std::this_thread::sleep_for(Millis(1));
  }
  return true;
}

class Stopwatch {
 public:
  LeaseClock::duration elapsed() const { return LeaseClock::now() - start_; }
  Millis elapsed_ms() const { return std::chrono::duration_cast<Millis>(elapsed()); }

 private:
  Deadline start_{LeaseClock::now()};
};

}  // namespace v0
}  // namespace redlease
