#pragma once
#include <optional>
#include <string>

#include "redlease/lease_info.hpp"

namespace redlease {
inline namespace v0 {

// What a look at a key may tell.

inline LeaseInfo held_by(const std::string& holder, std::uint64_t fence, Millis held_for,
                         Millis remaining = Millis(60'000)) {
  LeaseInfo info;
  info.held = true;
  info.holder = holder;
  info.remaining = remaining;
  info.held_for = held_for;
  info.fence = FencingToken{fence};
  return info;
}

inline LeaseInfo held_by_another(std::optional<Millis> remaining) {
  LeaseInfo info;
  info.held = true;
  info.remaining = remaining;
  return info;
}

inline LeaseInfo free_after(std::uint64_t fence) {
  LeaseInfo info;
  info.fence = FencingToken{fence};
  return info;
}

}  // namespace v0
}  // namespace redlease
