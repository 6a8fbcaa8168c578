#pragma once
#include <string>
#include <vector>

#include "rows.hpp"

namespace bench {

// The rows that have a goal and a ratio, as bars with a mark where the goal is. SVG.
std::string draw(const std::vector<Row>&);

}  // namespace bench
