#pragma once
#include <map>
#include <string>
#include <vector>

#include "cli/context.hpp"
#include "cli/output.hpp"

namespace redlease::cli {

/// What ls and watch show of leases, by name. Lines without line ends, at most `width` columns wide (0: any width).
std::vector<std::string> lease_lines(const std::map<std::string, LeaseInfo>&, std::size_t width, const Screen&);

}  // namespace redlease::cli
