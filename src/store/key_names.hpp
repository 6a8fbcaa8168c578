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

// The helper keys of a lease, in its slot. Two forms, told apart by the byte before the suffix: with one, lease `x` and
// lease `x:{x}` would share theirs.
struct KeyNames {
  explicit KeyNames(std::string_view key) {
    std::string stem(key);
    stem += ':';
    if (!has_hash_tag(key)) stem.append("{").append(key).append("}");
    meta.append(stem).append(meta_suffix);
    queue.append(stem).append(queue_suffix);
    seen.append(stem).append(seen_suffix);
  }
  std::string meta, queue, seen;
};

}  // namespace v0
}  // namespace redlease
