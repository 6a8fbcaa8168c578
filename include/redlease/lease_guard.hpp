#pragma once
#include <concepts>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

#include "redlease/client.hpp"
#include "redlease/error.hpp"
#include "redlease/export.hpp"
#include "redlease/lease.hpp"
#include "redlease/options.hpp"
#include "redlease/types.hpp"

namespace redlease {
inline namespace v0 {

/// A lease tied to a scope: acquired by the constructor, kept for as long as the scope lasts, given back by the
/// destructor.
///
/// One thread of the Client renews all of its guards' leases, each a third of its ttl after the last renewal and, where
/// that fails, again and again before the deadline. When the lease is lost, stop_token() stops and on_lost is called,
/// both on a thread that renews nothing, with no lock held: from there the guard may be released, destroyed, or another
/// acquired. The deadline is a local timer's event: no answer, and no server, is needed for it. What takes long
/// there holds up no other lease, as long as fewer than 64 stop callbacks and 64 on_lost go on in one Client.
///
/// A Client that ends before its guards renews them no more: they are lost at their deadline, which is then signalled
/// by held(), ensure_held() or stop_token(), on the thread that calls it. Release still works.
///
/// Move-only. held(), ensure_held(), deadline() and stop_token() may be called from several threads at once; moving,
/// releasing and destroying may not overlap with any other call. In a forked child nothing is held.
class [[nodiscard]] REDLEASE_EXPORT LeaseGuard {
 public:
  /// Waits for up to LeaseOptions::wait. Throws AcquireError unless acquired, std::invalid_argument for flawed options,
  /// std::system_error if there can be no thread that keeps it (it is then given back), as the others below do.
  [[nodiscard]] LeaseGuard(Client&, const LeaseKey&, const LeaseOptions& = {}, std::stop_token = {});

  /// Tries once. Busy: owns() is false, nothing is thrown. Otherwise as above. A template, so that {} stays
  /// unambiguous.
  template <std::same_as<std::try_to_lock_t> Tag>
  [[nodiscard]] LeaseGuard(Client& client, const LeaseKey& key, Tag, const LeaseOptions& options = {})
      : LeaseGuard(TryOnce{}, client, key, options) {}

  /// Takes over a Lease; these options hold from the next renewal on. Renews an unheld one (adopted) once; throws
  /// LeaseLost if that does not succeed, for whatever reason.
  [[nodiscard]] LeaseGuard(Client&, Lease, const LeaseOptions& = {});

  LeaseGuard(LeaseGuard&&) noexcept;
  LeaseGuard& operator=(LeaseGuard&&) noexcept;  ///< releases what was held before

  /// Releases. Takes at most one op_timeout, and as long as an on_lost that is going on; never throws.
  ~LeaseGuard();

  /// Acquired and not released. Stays true when the lease is lost: ask held() for that.
  bool owns() const noexcept;
  explicit operator bool() const noexcept { return owns(); }

  /// Owned and still before its deadline.
  bool held() const noexcept;

  /// Throws LeaseLost, saying how, unless held(). Call it between the steps of the work.
  void ensure_held() const;

  /// Stops when the lease is lost, or stop_before ahead of its deadline. Never stops if this guard never owned, or was
  /// released in time.
  std::stop_token stop_token() const noexcept;

  /// The number to hand to the resource. Throws LeaseLost if there is none, because this guard never owned.
  FencingToken fencing_token() const;

  /// Deadline::min() if this guard never owned.
  Deadline deadline() const noexcept;
  const LeaseKey& key() const noexcept;      ///< requires owns()
  const OwnerToken& token() const noexcept;  ///< requires owns()

  /// How it was lost, if it was.
  std::optional<LossCause> loss() const noexcept;

  /// Gives it back now, without waiting for a renewal that is on its way; held() and owns() are false from before the
  /// first byte leaves, and nothing is signalled from then on. Waits for an on_lost that is going on, except from
  /// inside it. A second release is not_held. What could not be given back is withdrawn in the background.
  ReleaseOutcome release() noexcept;

  /// Why the release did not succeed; empty if it did. For renewals see Observer.
  const Error& last_error() const noexcept;

 private:
  struct TryOnce {};
  LeaseGuard(TryOnce, Client&, const LeaseKey&, const LeaseOptions&);
  struct State;
  static std::unique_ptr<State> kept(Lease, const LeaseOptions&);
  std::unique_ptr<State> state_;
};

}  // namespace v0
}  // namespace redlease
