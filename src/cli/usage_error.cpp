#include "cli/usage_error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace redlease::cli {
namespace {

std::string what_is_wrong(const CLI::App& app, const std::string& command, const CLI::ParseError& error) {
  const std::vector<std::string> left = app.remaining(true);  // what nobody knew what to do with
  const auto is_option = [](const std::string& word) { return word.size() > 1 && word[0] == '-'; };
  const auto option = std::ranges::find_if(left, is_option);
  const auto word = std::ranges::find_if_not(left, is_option);
  if (command.empty() && word != left.end()) {
    std::vector<std::string> known;
    for (const CLI::App* each : app.get_subcommands({})) known.push_back(each->get_name());
    return fmt::format("'{}' is no command; there are {}", *word, fmt::join(known, ", "));
  }
  if (command == "run" && word < option) {
    return fmt::format("the command goes behind --: redlease run KEY [options] -- {}", fmt::join(left, " "));
  }
  if (option != left.end()) {
    return fmt::format("there is no option {}{}", *option, command.empty() ? "" : " of redlease " + command);
  }
  if (left.empty()) return error.what();
  return fmt::format("'{}' is more than redlease {} takes", fmt::join(left, " "), command);
}

}  // namespace

std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const auto given = app.get_subcommands();
  const std::string command = given.empty() ? "" : given.front()->get_name();
  return fmt::format("{}\nTry 'redlease {}--help'.", what_is_wrong(app, command, error),
                     command.empty() ? "" : command + " ");
}

}  // namespace redlease::cli
