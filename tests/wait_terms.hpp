#pragma once
#include <optional>
#include <ostream>
#include <string>

#include "redlease/plan/wait_plan.hpp"

namespace redlease::testing_support {

using namespace std::chrono_literals;

constexpr Deadline wait_start = Deadline{} + 1h;
constexpr std::int64_t server_start = 1'700'000'000'000'000;  // what the server's clock shows then

// A wait for ever at a store with a queue.
inline WaitPlan::Terms patient(std::uint64_t seed = 1) {
  return {.start = wait_start, .give_up = Deadline::max(), .ttl = 12s, .margin = 122ms, .seed = seed};
}

// A place in the queue as it is told `after` the start, in answer to a question that took no time.
inline WaitPlan::Place place_at(LeaseClock::duration after, std::optional<Millis> remaining = 1h,
                                std::size_t ahead = 0) {
  return {.remaining = remaining,
          .ahead = ahead,
          .sent = wait_start + after,
          .server_time = server_start + after / std::chrono::microseconds(1)};
}

// What the plan wants at a time, in words.
inline std::string wants(const WaitPlan& plan, Deadline now) {
  const WaitPlan::Next next = plan.next(now);
  switch (next.step) {
    case WaitPlan::Step::subscribe: return "an inbox";
    case WaitPlan::Step::listen: return "to listen";
    case WaitPlan::Step::give_up: return "to give up";
    case WaitPlan::Step::ask: break;
  }
  switch (next.how) {
    case Ask::once: return "to ask once";
    case Ask::queue: return "to ask for a place";
    case Ask::reserve: return "to ask for its turn to be kept";
    case Ask::last: return "to ask for the last time";
  }
  return "?";
}

// How long it listens from there.
inline LeaseClock::duration pause_of(const WaitPlan& plan, Deadline now) {
  const WaitPlan::Next next = plan.next(now);
  return next.step == WaitPlan::Step::listen ? next.until - now : LeaseClock::duration::zero();
}

// Has been told "another holds it", has got an inbox, and a place in the queue.
inline WaitPlan in_line(const WaitPlan::Terms& terms, const WaitPlan::Place& place = place_at({})) {
  WaitPlan plan(terms);
  plan.saw_busy(terms.start, 1h);
  plan.saw_inbox(terms.start);
  plan.saw_queued(terms.start, place);
  return plan;
}

}  // namespace redlease::testing_support
