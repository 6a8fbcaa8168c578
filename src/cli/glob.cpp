#include "cli/glob.hpp"

#include <utility>

namespace redlease::cli {
namespace {

constexpr std::string_view special = "*?[\\";

char next(std::string_view& pattern) noexcept {
  const char c = pattern.front();
  pattern.remove_prefix(1);
  return c;
}

// Behind a '['; takes the class off the pattern. One that is not closed ends with the pattern, as servers have it.
bool class_has(std::string_view& pattern, char c) noexcept {
  const bool inverse = pattern.starts_with('^');
  if (inverse) pattern.remove_prefix(1);
  bool has = false;
  while (!pattern.empty() && pattern.front() != ']') {
    char from = next(pattern);
    if (from == '\\' && !pattern.empty()) {
      has |= next(pattern) == c;
    } else if (pattern.size() >= 2 && pattern.front() == '-') {
      pattern.remove_prefix(1);
      auto low = static_cast<unsigned char>(from), high = static_cast<unsigned char>(next(pattern));
      if (low > high) std::swap(low, high);
      has |= low <= static_cast<unsigned char>(c) && static_cast<unsigned char>(c) <= high;
    } else {
      has |= from == c;
    }
  }
  if (!pattern.empty()) pattern.remove_prefix(1);
  return has != inverse;
}

// Takes what stands for one character off the pattern, which is not empty.
bool one_matches(std::string_view& pattern, char c) noexcept {
  const char first = next(pattern);
  if (first == '?') return true;
  if (first == '[') return class_has(pattern, c);
  return (first == '\\' && !pattern.empty() ? next(pattern) : first) == c;
}

// Takes what stands before the first wildcard off the pattern.
std::string head_of(std::string_view& pattern) {
  std::string head;
  while (!pattern.empty()) {
    if (special.find(pattern.front()) != special.npos) {
      if (pattern.front() != '\\') break;
      if (pattern.size() > 1) pattern.remove_prefix(1);
    }
    head += next(pattern);
  }
  return head;
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view text) noexcept {
  // Behind the last '*', and where in the text that was last tried. An earlier one need never be looked at again.
  bool starred = false;
  std::string_view star_pattern, star_text;
  for (;;) {
    if (pattern.starts_with('*')) {
      pattern.remove_prefix(1);
      starred = true;
      star_pattern = pattern;
      star_text = text;
      continue;
    }
    if (text.empty() && pattern.empty()) return true;
    if (!text.empty() && !pattern.empty() && one_matches(pattern, text.front())) {
      text.remove_prefix(1);
      continue;
    }
    if (!starred || star_text.empty()) return false;
    star_text.remove_prefix(1);
    text = star_text;
    pattern = star_pattern;
  }
}

std::string glob_head(std::string_view pattern) { return head_of(pattern); }

std::optional<std::string> glob_literal(std::string_view pattern) {
  std::string head = head_of(pattern);
  return pattern.empty() ? std::optional(std::move(head)) : std::nullopt;
}

std::string glob_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != special.npos || c == ']') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace redlease::cli
