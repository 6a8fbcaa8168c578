#pragma once
#include <vector>

#include "redlease/wire/endpoint.hpp"
#include "wire/tcp.hpp"

namespace redlease {
inline namespace v0 {

// The first of the addresses that takes the connection; each gets its share of the time that is left. The endpoint is
// for the error's text.
Result<OwnedFd> dial_any(const Endpoint&, const std::vector<SocketAddress>&, const Limits&);

}  // namespace v0
}  // namespace redlease
