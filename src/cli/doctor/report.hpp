#pragma once
#include <vector>

#include "cli/doctor/exam.hpp"
#include "cli/doctor/finding.hpp"

namespace redlease::cli::doctor {

struct Report {
  std::vector<Finding> findings;  ///< in the order of the table
  /// 0 clean, 1 warnings, 2 failures, 3 nothing learnt of the server.
  int exit() const;
};

/// For people, the worst first.
void tell(const Report&, const Exam&);
/// The document of docs/tool.md.
Json to_json(const Report&, const Exam&);

}  // namespace redlease::cli::doctor
