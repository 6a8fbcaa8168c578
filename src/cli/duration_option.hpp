#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "redlease/options.hpp"

namespace redlease::cli {

/// An option that takes a duration (see parse_duration). `word`, if any, is another thing it may say: "forever".
CLI::Option* add_duration(CLI::App&, const std::string& names, Millis& into, const std::string& help,
                          std::string_view word = {});

CLI::Option* add_duration(CLI::App&, const std::string& names, std::optional<Millis>& into, const std::string& help);

}  // namespace redlease::cli
