#pragma once
#include <memory>

#include "fork.hpp"
#include "redlease/wire/transport.hpp"

namespace redlease {
inline namespace v0 {

// The TLS handshake over a socket that is connected already, in blocking mode. Errors: tls_failed, timed_out,
// cancelled.
Result<std::unique_ptr<Transport>> connect_tls(OwnedFd, const Endpoint&, const Limits&);

}  // namespace v0
}  // namespace redlease
