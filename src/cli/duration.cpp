#include "cli/duration.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <limits>

namespace redlease::cli {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t millis;
};
constexpr std::array units{Unit{"d", 86'400'000}, Unit{"h", 3'600'000}, Unit{"m", 60'000}, Unit{"s", 1'000},
                           Unit{"ms", 1}};
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 1'000'000;  // in nanoseconds it still fits

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view take(std::string_view& text, bool (*belongs)(char)) {
  std::size_t n = 0;
  while (n < text.size() && belongs(text[n])) ++n;
  const std::string_view taken = text.substr(0, n);
  text.remove_prefix(n);
  return taken;
}

std::optional<std::int64_t> whole(std::string_view digits) {
  std::int64_t value = 0;
  for (const char c : digits) {
    value = value * 10 + (c - '0');
    if (value > most) return std::nullopt;
  }
  return value;
}

// Of `digits` behind a decimal point the part of a unit, if it is a whole number of milliseconds.
std::optional<std::int64_t> part(std::string_view digits, std::int64_t unit) {
  std::int64_t sum = 0, place = unit;
  for (const char c : digits) {
    if (place % 10 != 0 && c != '0') return std::nullopt;
    place /= 10;
    sum += place * (c - '0');
  }
  return sum;
}

}  // namespace

std::optional<Millis> parse_duration(std::string_view text) noexcept {
  if (text == "0") return Millis{0};
  std::int64_t sum = 0;
  std::size_t next_unit = 0;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const std::string_view digits = take(text, is_digit);
    std::string_view fraction;
    if (text.starts_with('.')) {
      text.remove_prefix(1);
      fraction = take(text, is_digit);
      if (fraction.empty()) return std::nullopt;
    }
    const std::string_view name = take(text, [](char c) { return !is_digit(c) && c != '.'; });
    while (next_unit < units.size() && units[next_unit].name != name) ++next_unit;
    if (digits.empty() || next_unit == units.size()) return std::nullopt;
    const std::int64_t unit = units[next_unit++].millis;
    const auto count = whole(digits), rest = part(fraction, unit);
    if (!count || !rest || *count > (most - sum - *rest) / unit) return std::nullopt;
    sum += *count * unit + *rest;
  }
  return Millis{sum};
}

std::string show(Millis duration) {
  const std::int64_t ms = duration.count();
  if (ms < 1'000) return fmt::format("{} ms", ms);
  if (ms < 10'000) return fmt::format("{}.{} s", ms / 1'000, ms % 1'000 / 100);
  const std::int64_t s = ms / 1'000;
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3'600) return s % 60 == 0 ? fmt::format("{} min", s / 60) : fmt::format("{} min {} s", s / 60, s % 60);
  const std::int64_t min = s / 60;
  if (min < 1'440)
    return min % 60 == 0 ? fmt::format("{} h", min / 60) : fmt::format("{} h {} min", min / 60, min % 60);
  const std::int64_t h = min / 60;
  return h % 24 == 0 ? fmt::format("{} d", h / 24) : fmt::format("{} d {} h", h / 24, h % 24);
}

}  // namespace redlease::cli
