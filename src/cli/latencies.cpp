#include "cli/latencies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "cli/table.hpp"

namespace redlease::cli {
namespace {

constexpr std::array steps{1.0, 1.5, 2.0, 3.0, 5.0, 7.0};

// A bar of so many columns, to an eighth of one.
std::string bar(double columns) {
  constexpr std::array<std::string_view, 8> parts{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<std::size_t>(std::lround(columns * 8));
  std::string out;
  for (std::size_t i = 0; i < eighths / 8; ++i) out += "█";
  return out += parts.at(eighths % 8);
}

}  // namespace

void Latencies::add(std::chrono::nanoseconds one) {
  ++count_;
  if (all_.size() < most) all_.push_back(one);
}

Micros Latencies::quantile(double part) const {
  if (all_.empty()) return Micros(0);
  auto sorted = all_;
  const auto rank = static_cast<std::size_t>(std::ceil(part * static_cast<double>(sorted.size())));
  const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(std::clamp<std::size_t>(rank, 1, sorted.size()) - 1);
  std::ranges::nth_element(sorted, at);
  return *at;
}

std::vector<Latencies::Bucket> Latencies::buckets() const {
  std::vector<Bucket> out;
  if (all_.empty()) return out;
  auto sorted = all_;
  std::ranges::sort(sorted);
  auto from = sorted.begin();
  for (double power = 1; from != sorted.end(); power *= 10) {
    for (const double step : steps) {
      const Micros bound(step * power);
      const auto to = std::upper_bound(from, sorted.end(), bound);
      if (from == sorted.end()) break;
      if (to != from || !out.empty()) out.push_back({bound, static_cast<std::size_t>(to - from)});
      from = to;
    }
  }
  return out;
}

std::vector<std::string> histogram(const std::vector<Latencies::Bucket>& buckets, std::size_t width) {
  std::size_t most = 1, bound_width = 0, count_width = 0;
  for (const auto& [up_to, count] : buckets) {
    most = std::max(most, count);
    bound_width = std::max(bound_width, columns_of(show(up_to)));
    count_width = std::max(count_width, fmt::formatted_size("{}", count));
  }
  const std::size_t around = std::string_view("<= ").size() + bound_width + 2 + 1 + count_width;
  const std::size_t room = width > around + 1 ? std::min<std::size_t>(width - around, 60) : 1;
  std::vector<std::string> lines;
  for (const auto& [up_to, count] : buckets) {
    const std::string bound = show(up_to);
    const double columns = static_cast<double>(room) * static_cast<double>(count) / static_cast<double>(most);
    lines.push_back(fitted(
        fmt::format("<= {}{}  {} {}", std::string(bound_width - columns_of(bound), ' '), bound, bar(columns), count),
        width));
  }
  return lines;
}

std::string show(Micros time) {
  const double micros = time.count();
  if (micros < 10) return fmt::format("{:.2g} µs", micros);
  if (micros < 999.5) return fmt::format("{:.0f} µs", micros);
  if (micros < 999'500) return fmt::format("{:.3g} ms", micros / 1'000);
  return fmt::format("{:.3g} s", micros / 1'000'000);
}

}  // namespace redlease::cli
