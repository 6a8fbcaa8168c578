#pragma once
#include <algorithm>
#include <chrono>

#include "redlease/plan/renewal_plan.hpp"

namespace redlease::testing_support {

using namespace std::chrono_literals;
using Step = RenewalPlan::Step;
using Span = LeaseClock::duration;

inline constexpr Deadline start = Deadline{} + 1h;  // what the first deadline counts from

inline KeepTerms terms(Millis ttl = 10s) {
  return {.ttl = ttl, .margin = Span(ttl) / 100 + 2ms, .op_timeout = std::clamp<Millis>(ttl / 3, 1ms, 1s)};
}
inline Deadline full(const KeepTerms& t, Deadline from = start) { return from + t.ttl - t.margin; }
inline RenewalPlan fresh(const KeepTerms& t, std::uint64_t seed = 1) { return {t, full(t), seed}; }

}  // namespace redlease::testing_support
