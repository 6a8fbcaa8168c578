#pragma once
// What a name may not look like, and how one is shown to people.
#include <string>
#include <string_view>

namespace redlease {
inline namespace v0 {

inline constexpr std::string_view meta_suffix = "lease:meta";
inline constexpr std::string_view queue_suffix = "lease:queue";
inline constexpr std::string_view seen_suffix = "lease:seen";

// Whether a lease of this name could meet a helper key of another.
constexpr bool is_helper_name(std::string_view name) noexcept {
  return name.ends_with(meta_suffix) || name.ends_with(queue_suffix) || name.ends_with(seen_suffix);
}

// In quotes, with anything that could disturb a log line as \xHH.
inline std::string quoted(std::string_view name) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte >= 0x20 && byte != 0x7f) {
      out += c;  // UTF-8 included
    } else {
      out += "\\x";
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
  return out += '"';
}

}  // namespace v0
}  // namespace redlease
