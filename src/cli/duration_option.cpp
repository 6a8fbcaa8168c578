#include "cli/duration_option.hpp"

#include <fmt/format.h>

#include "cli/duration.hpp"

namespace redlease::cli {
namespace {

template <class Into>
CLI::Option* add(CLI::App& app, const std::string& names, Into& into, const std::string& help, std::string_view word) {
  const auto read = [&into, names, word](const CLI::results_t& given) {
    const std::string& text = given.back();
    if (!word.empty() && text == word) return into = forever, true;
    const auto duration = parse_duration(text);
    if (!duration) {
      throw CLI::ValidationError(names, fmt::format("'{}' is not a duration: write 250ms, 10s, 5m, 1h30m{}{}", text,
                                                    word.empty() ? "" : " or ", word));
    }
    return into = *duration, true;
  };
  return app.add_option(names, read, help)->type_name(word.empty() ? "DURATION" : "DURATION|" + std::string(word));
}

}  // namespace

CLI::Option* add_duration(CLI::App& app, const std::string& names, Millis& into, const std::string& help,
                          std::string_view word) {
  return add(app, names, into, help, word);
}

CLI::Option* add_duration(CLI::App& app, const std::string& names, std::optional<Millis>& into,
                          const std::string& help) {
  return add(app, names, into, help, {});
}

}  // namespace redlease::cli
