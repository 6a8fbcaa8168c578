#pragma once
#include <array>
#include <span>
#include <string_view>

#include "store/key_names.hpp"
#include "store/script_call.hpp"
#include "store/scripts.hpp"

namespace redlease {
inline namespace v0 {

// One release, leave or withdrawal, with the names that it needs. Its views live as long as what it was made from.
class ReleaseCall {
 public:
  // `member`: of a waiter, its entry in the queue; empty: it has none. `ping`: see ScriptCall.
  ReleaseCall(std::string_view key, std::string_view token, std::string_view member = {}, bool ping = false)
      : names_(key),
        words_{key, names_.meta(), names_.queue(), names_.seen(), token, member},
        call_{Scripts::release, 4, std::span(words_).first(member.empty() ? 5 : 6), ping} {}

  operator const ScriptCall&() const noexcept { return call_; }

 private:
  const HelperNames names_;
  const std::array<std::string_view, 6> words_;
  const ScriptCall call_;
};

}  // namespace v0
}  // namespace redlease
