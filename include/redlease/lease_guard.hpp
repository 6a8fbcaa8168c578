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

/// A lease tied to a scope: acquired by the constructor, given back by the destructor.
///
/// Nothing renews it in the background yet: it is held for LeaseOptions::ttl, so choose a ttl longer than the work. A
/// loss is noticed by held(), ensure_held() or stop_token(), whichever is called first after it; that call requests the
/// stop and calls on_lost.
///
/// Move-only. held(), ensure_held(), deadline() and stop_token() may be called from several threads at once; moving,
/// releasing and destroying may not overlap with any other call. In a forked child nothing is held.
class [[nodiscard]] REDLEASE_EXPORT LeaseGuard {
 public:
  /// Waits for up to LeaseOptions::wait. Throws AcquireError unless acquired, std::invalid_argument for flawed options.
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

  /// Releases. Takes at most one op_timeout; never throws.
  ~LeaseGuard();

  /// Acquired and not released. Stays true when the lease is lost: ask held() for that.
  bool owns() const noexcept;
  explicit operator bool() const noexcept { return owns(); }

  /// Owned and still before its deadline.
  bool held() const noexcept;

  /// Throws LeaseLost, saying how, unless held(). Call it between the steps of the work.
  void ensure_held() const;

  /// Stopped once the loss was noticed. Never stops if this guard never owned.
  std::stop_token stop_token() const noexcept;

  /// The number to hand to the resource. Throws LeaseLost if there is none, because this guard never owned.
  FencingToken fencing_token() const;

  /// Deadline::min() if this guard never owned.
  Deadline deadline() const noexcept;
  const LeaseKey& key() const noexcept;      ///< requires owns()
  const OwnerToken& token() const noexcept;  ///< requires owns()

  /// How it was lost, if it was.
  std::optional<LossCause> loss() const noexcept;

  /// Gives it back now; held() and owns() are false from before the first byte leaves. A second release is not_held.
  ReleaseOutcome release() noexcept;

  /// Why the last renewal or release did not succeed; empty if it did.
  const Error& last_error() const noexcept;

 private:
  struct TryOnce {};
  LeaseGuard(TryOnce, Client&, const LeaseKey&, const LeaseOptions&);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace v0
}  // namespace redlease
