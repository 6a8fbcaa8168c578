#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace redlease::cli {

/// As the server's own patterns (SCAN MATCH, KEYS): `*`, `?`, `[a-z]`, `[^a]`, and `\` before a character that is to be
/// taken as it is.
bool glob_matches(std::string_view pattern, std::string_view text) noexcept;

/// What every name that the pattern matches begins with, as it is.
std::string glob_head(std::string_view pattern);

/// The only name that the pattern matches, if it is one without wildcards.
std::optional<std::string> glob_literal(std::string_view pattern);

/// A pattern that matches this text alone.
std::string glob_escaped(std::string_view text);

}  // namespace redlease::cli
