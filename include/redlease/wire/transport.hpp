#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>

#include "redlease/clock.hpp"
#include "redlease/error.hpp"
#include "redlease/export.hpp"
#include "redlease/wire/endpoint.hpp"

namespace redlease {
inline namespace v0 {

enum class IoStatus : std::uint8_t {
  ok,
  timed_out,  ///< the deadline passed
  cancelled,  ///< the stop token asked
  closed,     ///< the other end closed in order
  failed,     ///< `error` says how
};

/// How far one read or write got. `bytes` counts also when the status is not ok.
struct Io {
  std::size_t bytes{0};
  IoStatus status{IoStatus::ok};
  std::error_code error{};
};

/// A stream of bytes to a server. The seam for tests: a double moves bytes and time as it likes.
/// Not thread-safe. Nothing here raises SIGPIPE; a signal (EINTR) never shortens or stretches a call.
class REDLEASE_EXPORT Transport {
 public:
  virtual ~Transport() = default;

  /// Hands over all bytes, or says how many the kernel took before it ended otherwise. With TLS `bytes` is the whole
  /// only if every byte of the encrypted records was taken. What the kernel takes at once may leave when the deadline
  /// has passed: it is looked at before waiting.
  virtual Io write(std::string_view bytes, const Limits&) noexcept = 0;

  /// At least one byte, and as many as are there; or says why not.
  virtual Io read(std::span<char> into, const Limits&) noexcept = 0;

  /// Nothing has arrived that nobody asked for and the other end has not closed. Never blocks.
  virtual bool quiet() noexcept = 0;

  /// To be polled for something to read; -1 if there is none.
  virtual int descriptor() const noexcept { return -1; }
};

/// Connects: every address of the host in turn within the one deadline, then the TLS handshake where the endpoint asks
/// for it. The name is resolved on a thread of its own that is left behind if it outlives the deadline. Errors:
/// resolve_failed, connect_failed, timed_out, cancelled, tls_failed, connection_closed (in the TLS handshake).
REDLEASE_EXPORT Result<std::unique_ptr<Transport>> connect(const Endpoint&, const Limits&);

}  // namespace v0
}  // namespace redlease
