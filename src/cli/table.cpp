#include "cli/table.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

namespace redlease::cli {
namespace {

constexpr std::size_t gap = 2, narrow = 12, narrowest = 4;

// The character that begins here, and how many bytes it has. Bytes that are no UTF-8 stand for themselves.
std::pair<std::uint32_t, std::size_t> character(std::string_view text) noexcept {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t size = character_size(text);
  if (size < 2) return {first, 1};
  std::uint32_t code = first & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3fU);
  return {code, size};
}

struct Range {
  std::uint32_t from, to;
};
constexpr std::array wide{Range{0x1100, 0x115f},   Range{0x2e80, 0xa4cf},   Range{0xac00, 0xd7a3},
                          Range{0xf900, 0xfaff},   Range{0xfe30, 0xfe6f},   Range{0xff00, 0xff60},
                          Range{0xffe0, 0xffe6},   Range{0x1f300, 0x1f64f}, Range{0x1f680, 0x1f6ff},
                          Range{0x1f900, 0x1f9ff}, Range{0x20000, 0x3fffd}};
constexpr std::array without_width{Range{0x300, 0x36f}, Range{0x200b, 0x200f}, Range{0x202a, 0x202e},
                                   Range{0x2060, 0x2069}, Range{0xfe00, 0xfe0f}};

std::size_t width_of(std::uint32_t code) noexcept {
  const auto within = [code](const Range& range) { return range.from <= code && code <= range.to; };
  return std::ranges::any_of(without_width, within) ? 0 : std::ranges::any_of(wide, within) ? 2 : 1;
}

std::size_t total(const std::vector<std::size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), std::size_t{0}) + gap * (widths.empty() ? 0 : widths.size() - 1);
}

// Takes from the widest of those that may be cut until all fits or none is wider than `least`.
void narrowed(std::vector<std::size_t>& widths, const std::vector<Column>& columns, std::size_t width,
              std::size_t least) {
  while (total(widths) > width) {
    std::size_t widest = widths.size();
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (columns[i].cut && widths[i] > least && (widest == widths.size() || widths[i] > widths[widest])) widest = i;
    }
    if (widest == widths.size()) return;
    --widths[widest];
  }
}

}  // namespace

std::size_t columns_of(std::string_view text) noexcept {
  std::size_t columns = 0;
  while (!text.empty()) {
    const auto [code, size] = character(text);
    columns += width_of(code);
    text.remove_prefix(size);
  }
  return columns;
}

std::string fitted(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  std::string out;
  std::size_t taken = 0;
  while (!text.empty()) {
    const auto [code, size] = character(text);
    taken += width_of(code);
    if (taken + 1 > columns) break;
    out += text.substr(0, size);
    text.remove_prefix(size);
  }
  return columns > 0 ? out + "…" : "";
}

std::vector<std::string> table_lines(std::vector<Column> columns, const std::vector<std::vector<Cell>>& rows,
                                     std::size_t width, const Screen& screen) {
  std::vector<std::size_t> shown(columns.size()), widths;  // which of the rows' cells, and how wide
  std::iota(shown.begin(), shown.end(), std::size_t{0});
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::size_t most = columns_of(columns[i].head);
    for (const auto& row : rows) most = std::max(most, columns_of(row[i].text));
    widths.push_back(most);
  }
  if (width > 0) {
    narrowed(widths, columns, width, narrow);
    while (total(widths) > width) {
      const auto last = std::ranges::max_element(columns, {}, &Column::drop);
      if (last->drop == 0) break;
      const auto at = last - columns.begin();
      columns.erase(last);
      shown.erase(shown.begin() + at);
      widths.erase(widths.begin() + at);
    }
    narrowed(widths, columns, width, narrowest);
  }
  const auto line = [&](const auto& cell_of) {
    std::string out;
    std::size_t used = 0;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Cell cell = cell_of(i);
      const std::size_t left = width == 0 ? widths[i] : std::min(widths[i], width - std::min(width, used));
      const std::string text = fitted(cell.text, left);
      const std::string pad(left - std::min(left, columns_of(text)), ' ');
      const bool last = i + 1 == columns.size();
      if (columns[i].right) out += pad;
      out += screen.tinted(cell.tint, text);
      if (!columns[i].right && !last) out += pad;
      if (!last && (width == 0 || used + left + gap <= width)) out += std::string(gap, ' ');
      used += left + gap;
    }
    return out;
  };
  std::vector<std::string> lines{line([&](std::size_t i) { return Cell{columns[i].head, Tint::faint}; })};
  for (const auto& row : rows) lines.push_back(line([&](std::size_t i) { return row[shown[i]]; }));
  return lines;
}

}  // namespace redlease::cli
