#pragma once
#include <string>
#include <string_view>

#include "helper_names.hpp"

namespace redlease {
inline namespace v0 {

// Whether Redis Cluster hashes only a part of this key: what lies between its first '{' and the next '}', if anything.
constexpr bool has_hash_tag(std::string_view key) noexcept {
  const auto open = key.find('{');
  if (open == std::string_view::npos) return false;
  const auto close = key.find('}', open + 1);
  return close != std::string_view::npos && close > open + 1;
}

// A helper key of a lease, in its slot. Two forms, told apart by the byte before the suffix: with one, lease `x` and
// lease `x:{x}` would share theirs.
inline std::string helper_name(std::string_view key, std::string_view suffix) {
  std::string name;
  name.reserve(2 * key.size() + 3 + suffix.size());
  name.append(key).append(":");
  if (!has_hash_tag(key)) name.append("{").append(key).append("}");
  return name.append(suffix);
}

}  // namespace v0
}  // namespace redlease
