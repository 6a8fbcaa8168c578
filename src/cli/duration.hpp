#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "redlease/clock.hpp"

namespace redlease::cli {

/// Reads "250ms", "10s", "5m", "1h", "2d", a decimal fraction of one ("1.5s"), or several from the largest down
/// ("1h30m"). "0" needs no unit. Nothing for all else: a number without a unit is a mistake that costs a factor of
/// 1,000. Nothing also below a millisecond and above 292 years.
std::optional<Millis> parse_duration(std::string_view) noexcept;

/// For people: "250 ms", "9.8 s", "4 min 10 s", "1 h 30 min", "3 d 2 h".
std::string show(Millis);

}  // namespace redlease::cli
