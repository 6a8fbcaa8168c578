#pragma once
#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "helper_names.hpp"
#include "redlease/types.hpp"

namespace redlease {
inline namespace v0 {

// Whether Redis Cluster hashes only a part of this key: what lies between its first '{' and the next '}', if anything.
constexpr bool has_hash_tag(std::string_view key) noexcept {
  const auto open = key.find('{');
  if (open == std::string_view::npos) return false;
  const auto close = key.find('}', open + 1);
  return close != std::string_view::npos && close > open + 1;
}

inline char* put(char* to, std::string_view text) noexcept {
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

// What a lease's helper keys begin with, in its slot, written to `to`; its end. Two forms, told apart by the byte
// before the suffix: with one, lease `x` and lease `x:{x}` would share theirs.
inline char* put_helper_stem(char* to, std::string_view key) noexcept {
  to = put(to, key);
  *to++ = ':';
  if (has_hash_tag(key)) return to;
  *to++ = '{';
  to = put(to, key);
  *to++ = '}';
  return to;
}

constexpr std::size_t helper_name_room(std::size_t key_size) noexcept { return 2 * key_size + 3 + queue_suffix.size(); }

inline std::string helper_name(std::string_view key, std::string_view suffix) {
  std::string name(helper_name_room(key.size()), '\0');
  name.resize(static_cast<std::size_t>(put(put_helper_stem(name.data(), key), suffix) - name.data()));
  return name;
}

// All of them, without an allocation where the key is no longer than a LeaseKey.
class HelperNames {
 public:
  explicit HelperNames(std::string_view key) {
    char* to = text_.data();
    if (3 * helper_name_room(key.size()) > text_.size()) {
      more_.resize(3 * helper_name_room(key.size()));
      to = more_.data();
    }
    const std::string_view stem(to, static_cast<std::size_t>(put_helper_stem(to, key) - to));
    to += stem.size();
    const auto name = [&](char* from, std::string_view suffix) {
      to = put(to, suffix);
      return std::string_view(from, static_cast<std::size_t>(to - from));
    };
    meta_ = name(to - stem.size(), meta_suffix);
    char* next = to;
    to = put(to, stem);
    queue_ = name(next, queue_suffix);
    next = to;
    to = put(to, stem);
    seen_ = name(next, seen_suffix);
  }
  HelperNames(const HelperNames&) = delete;
  HelperNames& operator=(const HelperNames&) = delete;

  std::string_view meta() const noexcept { return meta_; }
  std::string_view queue() const noexcept { return queue_; }
  std::string_view seen() const noexcept { return seen_; }

 private:
  std::array<char, 3 * helper_name_room(LeaseKey::max_size)> text_;  // not cleared: it is used at every release
  std::string more_;
  std::string_view meta_, queue_, seen_;
};

}  // namespace v0
}  // namespace redlease
