#pragma once
#include <csignal>
#include <string>
#include <vector>

#include "cli/output.hpp"

namespace redlease::cli {

/// A terminal's other screen, redrawn in place, while it lives. Also when the tool is suspended (^Z) the terminal is
/// given back as it was. One at a time.
class LiveScreen {
 public:
  LiveScreen();
  ~LiveScreen();
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;

  /// Shows these lines, none of which may be wider than the screen, in one write: nothing flickers.
  static void draw(const std::vector<std::string>& lines);

 private:
  struct sigaction before_ {};
};

}  // namespace redlease::cli
