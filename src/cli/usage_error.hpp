#pragma once
#include <CLI/CLI.hpp>
#include <string>

namespace redlease::cli {

/// What is wrong with the command line, in the words of whoever wrote it, and where to read on.
std::string usage_error(const CLI::App&, const CLI::ParseError&);

}  // namespace redlease::cli
