#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "redlease/clock.hpp"

namespace redlease::testing_support {

/// One line of what a world did: when (worlds begin an hour after the clock's epoch), what, and a number unless it is
/// 0.
inline std::string trace_line(Deadline now, std::string_view who, const char* what, std::uint64_t number) {
  using namespace std::chrono_literals;
  std::string line = std::to_string((now - (Deadline{} + 1h)).count() / 1'000) + " us: ";
  line.append(who).append(what);
  if (number != 0) line += " " + std::to_string(number);
  return line;
}

}  // namespace redlease::testing_support
