#include "cli/changes.hpp"

namespace redlease::cli {

std::string_view name_of(Event event) noexcept {
  switch (event) {
    case Event::held: return "held";
    case Event::acquired: return "acquired";
    case Event::released: return "released";
    case Event::expired: return "expired";
    case Event::handed_over: return "handed_over";
    case Event::waiting: return "waiting";
  }
  return "?";
}

bool is_same_grant(const LeaseInfo& one, const LeaseInfo& other) noexcept {
  if (!one.held || !other.held || one.held_for.has_value() != other.held_for.has_value()) return false;
  return !one.held_for || one.fence == other.fence;
}

std::vector<Change> changes(const LeaseInfo* before, const LeaseInfo& now, Millis elapsed) {
  std::vector<Change> out;
  const bool was_held = before != nullptr && before->held;
  if (was_held && !is_same_grant(*before, now)) {
    const bool over = before->remaining && elapsed >= *before->remaining;
    if (over || !now.held) {
      out.push_back({over ? Event::expired : Event::released, before});
      if (now.held) out.push_back({Event::acquired, &now});
    } else {
      out.push_back({Event::handed_over, &now, before});
    }
  } else if (!was_held && now.held) {
    out.push_back({before == nullptr ? Event::held : Event::acquired, &now});
  }
  if (now.waiters != (before != nullptr ? before->waiters : 0)) out.push_back({Event::waiting, &now});
  return out;
}

}  // namespace redlease::cli
