#pragma once
#include <map>
#include <memory>
#include <string>

#include "cli/changes.hpp"
#include "cli/context.hpp"

namespace redlease::cli {

/// Where watch shows what it sees. All may throw Failure: no_reader if nobody looks any more.
class View {
 public:
  View() = default;
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  virtual ~View() = default;
  virtual void changed(const std::string& key, const Change&) = 0;
  /// Empty: the server answers.
  virtual void trouble(const std::string&) = 0;
  virtual void round(const std::map<std::string, LeaseInfo>&) = 0;
  /// From time to time between rounds. False: nobody looks any more.
  virtual bool idle() = 0;
};

/// One line, or one JSON object on a line, per change.
std::unique_ptr<View> line_view(const Context&);

/// A table on the terminal's other screen. What was last seen stays on the usual one.
std::unique_ptr<View> table_view(const Context&, const std::string& pattern);

}  // namespace redlease::cli
