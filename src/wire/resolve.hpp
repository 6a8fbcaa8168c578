#pragma once
// Names to addresses, within a deadline that getaddrinfo itself does not know.
#include <cstdint>
#include <string>
#include <vector>

#include "wire/tcp.hpp"

namespace redlease {
inline namespace v0 {

struct Found {
  int code{0};          // 0 or an EAI_ code
  int system_error{0};  // errno, where the code is EAI_SYSTEM
  std::vector<SocketAddress> addresses{};
};
using Lookup = Found (*)(const std::string& host);
Found system_lookup(const std::string& host);

// Literal addresses at once. A name on a detached thread, which is left behind if it outlives the limits; calls for one
// name share a lookup that has just begun, and at most 16 lookups are under way in the process. `lookup` is for tests.
// Errors: resolve_failed, timed_out, cancelled.
Result<std::vector<SocketAddress>> resolve(const std::string& host, std::uint16_t port, const Limits&,
                                           Lookup lookup = system_lookup);

}  // namespace v0
}  // namespace redlease
