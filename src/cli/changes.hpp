#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "redlease/lease_info.hpp"

namespace redlease::cli {

enum class Event : std::uint8_t {
  held,         ///< at the first look
  acquired,     ///< it was free before
  released,     ///< given back, or broken: its time was not over
  expired,      ///< its time was over
  handed_over,  ///< to another, without having been seen free
  waiting,      ///< more or fewer wait than before
};
/// For programs: "held", "handed_over".
std::string_view name_of(Event) noexcept;

struct Change {
  Event event;
  const LeaseInfo* holder;            ///< whom it is about: of released and expired who had it before
  const LeaseInfo* before = nullptr;  ///< of handed_over
};

/// Whether it is the same grant that holds the lease in both. Of foreign holders it cannot be told.
bool is_same_grant(const LeaseInfo&, const LeaseInfo&) noexcept;

/// What two looks at a key tell, in the order in which it happened. `before` is none at the first look, `elapsed` lies
/// between them. The changes point into the two.
std::vector<Change> changes(const LeaseInfo* before, const LeaseInfo& now, Millis elapsed);

}  // namespace redlease::cli
