#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "redlease/error.hpp"

namespace redlease {
inline namespace v0 {

// What an error reply proves about the command that got it.
enum class Proof : std::uint8_t {
  not_executed,  // raised before a script starts
  needs_eval,    // the same, and cured by sending the script's text
  may_have_run,  // possibly raised from within
};

struct ErrorReply {
  Errc code;
  Proof proof;
};

// What of an error reply may be shown: servers repeat the arguments of a command that they do not know, passwords and
// tokens among them.
std::string_view quotable(std::string_view error_text) noexcept;

// By the reply's first word alone: the rest of the text differs between servers and versions.
ErrorReply classify(std::string_view error_text) noexcept;

// As classify, for a refusal of one command inside a script, caught by the script itself: older servers put a position
// and a dash in front of the word, and a refusal by ACL is a bare ERR there.
Errc classify_refusal(std::string_view error_text) noexcept;

// A sentence on what to do about it; empty if there is nothing to say.
std::string_view advice(Errc, std::string_view error_text) noexcept;

// The error with that sentence behind its detail.
Error advised(Error, std::string_view error_text);

}  // namespace v0
}  // namespace redlease
