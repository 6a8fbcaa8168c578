#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output.hpp"

namespace redlease::cli {

/// How many columns of a terminal this UTF-8 text takes.
std::size_t columns_of(std::string_view text) noexcept;

/// Cut to at most so many columns, with "…" at the end if something is missing.
std::string fitted(std::string_view text, std::size_t columns);

struct Column {
  std::string head;
  bool right{false};  ///< numbers
  bool cut{false};    ///< may be made narrower
  int drop{0};        ///< where there is no room, columns with the highest go first; 0: never
};

struct Cell {
  std::string text;
  Tint tint{Tint::plain};
};

/// The head and the rows as lines without line ends, each at most `width` columns wide; 0: as wide as they need.
std::vector<std::string> table_lines(std::vector<Column>, const std::vector<std::vector<Cell>>& rows, std::size_t width,
                                     const Screen&);

}  // namespace redlease::cli
