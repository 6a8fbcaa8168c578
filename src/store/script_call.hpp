#pragma once
// Running one script on one connection, and what its answer proves.
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "redlease/clock.hpp"
#include "redlease/error.hpp"
#include "redlease/wire/connection.hpp"
#include "redlease/wire/resp.hpp"
#include "redlease/wire/script.hpp"
#include "wire/decimal.hpp"

namespace redlease {
inline namespace v0 {

// One call of a script: its keys and arguments behind one another.
struct ScriptCall {
  const Script& script;
  std::size_t keys;
  std::span<const std::string_view> words;
  // Servers write to the client whose turn it is before those whom its script told something, unless they owed it an
  // answer before. So a PING in front lets the next holder hear first.
  bool ping{false};
};

struct ScriptAnswer {
  Delivery delivery{Delivery::not_executed};
  // The script's own answer, valid until the connection's next call; null if there is none.
  const Reply* reply{nullptr};
  // The command that was refused inside the script, if that is why there is none.
  std::string refused{};
  // Why there is none. With `not_executed` that much is proved, with `in_doubt` nothing.
  Error error{};
  // Read before the first byte of the request that was answered left.
  Deadline sent{};
};

// Whether it is an array of just these: 'i' an integer, 't' a text, 'a' an array. Nothing is read from a reply that
// does not fit: what answers may be a proxy.
bool has_shape(const Reply&, std::string_view shape) noexcept;

// Marks the answer as none: what came is nothing that the script says.
void not_understood(ScriptAnswer&, const Connection&);

// By digest first; the text follows when the server does not know it (which proves that nothing was executed) within
// the same limits. An error reply becomes an Error, by the table in server_errors.
ScriptAnswer run(Connection&, const ScriptCall&, const Limits&, const Clock&);

void append_evalsha(std::string& frame, const ScriptCall&);

// The server does not know the script by its digest, which proves that nothing was executed.
bool needs_eval(const Reply&) noexcept;

// The text at once, behind whatever was sent before: for withdrawals, where nobody may be there to read a NOSCRIPT.
void append_eval(std::string& frame, const ScriptCall&);

// Judges the connection's reply to a script: sets reply, or error and delivery.
void judge(ScriptAnswer&, const Connection&);

}  // namespace v0
}  // namespace redlease
