#pragma once
#include <string>

#include "cli/timeline.hpp"

namespace redlease::cli {

/// What stands around the drawing.
struct Caption {
  std::string title;  ///< what was followed, and where
  std::string begun;  ///< when
  Millis interval{};  ///< between two looks
};

/// A drawing on a white ground: a lane for each participant under each key, bars for holding, hatched ones for waiting.
/// Names are escaped. The same timeline and caption give the same bytes.
std::string svg_of(const Timeline&, const Caption&);

}  // namespace redlease::cli
