#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "redlease/clock.hpp"
#include "redlease/export.hpp"
#include "redlease/types.hpp"

namespace redlease {
inline namespace v0 {

/// How one lease is asked for and kept. Judged as a whole by flaw(); a flaw is std::invalid_argument before anything is
/// sent.
struct LeaseOptions {
  /// How long the server keeps the lease without a renewal; 10 ms to 24 h. The holder counts a little less
  /// (ClientOptions::drift).
  Millis ttl{30'000};
  /// How long Client::acquire and LeaseGuard go on trying; 0 tries once, `forever` has no limit, negative is a flaw.
  Millis wait{0};
  /// The limit of one call to the server, connecting included; 1 ms to ttl/3. By default ttl/3, at most 1 s.
  std::optional<Millis> op_timeout{};
  /// LeaseGuard: renew in the background. Without it the lease is held for one ttl; its loss is signalled all the same.
  bool renew{true};
  /// LeaseGuard: no deadline lies later than the acquisition plus this; positive.
  std::optional<Millis> max_hold{};
  /// LeaseGuard: ask the work to stop this long before the deadline; 0 to ttl/2.
  Millis stop_before{0};
  /// The fence of this grant will be higher than this; below 2^52. For a resource that says "17, seen 23": ask with 23.
  std::optional<FencingToken> fence_floor{};
  /// Shown to whoever inspects the key; up to 256 bytes.
  std::string label{};
  /// LeaseGuard: called once when the lease is lost, with no lock held, on a thread of its own; never after the guard
  /// was released or destroyed, which waits for it. What it throws is swallowed.
  std::function<void(LossCause)> on_lost{};
};

/// The first thing wrong with the options, in words, or nothing. The text lives as long as the program.
REDLEASE_EXPORT std::optional<std::string_view> flaw(const LeaseOptions&) noexcept;

/// LeaseOptions::op_timeout, or what it is by default: ttl/3, at most 1 s.
REDLEASE_EXPORT Millis op_timeout_of(const LeaseOptions&) noexcept;

class Observer;

/// For rediss:// URLs. Files are PEM. Without ca_file the system's store is trusted; without server_name the URL's host
/// is what the certificate must name. cert_file and key_file, always both, present a client certificate.
struct TlsOptions {
  std::string ca_file{}, cert_file{}, key_file{}, server_name{};
  /// false accepts any certificate: encryption without knowing to whom. For tests.
  bool verify{true};
};

/// How a Client reaches its server. A value outside its bounds is std::invalid_argument from Client's constructor.
struct ClientOptions {
  std::size_t max_connections{16};  ///< for commands, per server; 1 to 65,535
  std::size_t max_inboxes{64};      ///< wake-up connections; waiters beyond share one
  std::string name{"redlease"};     ///< CLIENT SETNAME: printable, no spaces; empty: none is set
  std::string key_prefix{};         ///< put before every name; up to 511 bytes
  double drift{0.01};               ///< the holder counts ttl less ttl * drift + 2 ms; in [0, 0.5)
  Millis quarantine{60'000};        ///< quorum: a restarted node grants nothing for so long; 0: off; no effect yet
  unsigned acks{0};                 ///< replicas that must have acknowledged; for now only 0
  TlsOptions tls{};
  std::shared_ptr<Observer> observer{};
  const Clock* clock{nullptr};  ///< must outlive the Client and its leases; null: Clock::real()
};

/// The first thing wrong with the options, in words, or nothing. The text lives as long as the program.
REDLEASE_EXPORT std::optional<std::string_view> flaw(const ClientOptions&) noexcept;

}  // namespace v0
}  // namespace redlease
