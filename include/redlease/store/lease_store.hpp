#pragma once
#include <memory>
#include <optional>
#include <string_view>
#include <variant>

#include "redlease/clock.hpp"
#include "redlease/error.hpp"
#include "redlease/export.hpp"
#include "redlease/lease_info.hpp"
#include "redlease/store/upkeep.hpp"
#include "redlease/types.hpp"

namespace redlease {
inline namespace v0 {

/// What an acquire asks for. Views live as long as the call. Keys here and below have their prefix.
struct AcquireRequest {
  std::string_view key;
  std::string_view token;
  Millis ttl{};
  std::optional<FencingToken> floor{};  ///< the fence granted is higher
  std::string_view holder{};            ///< "host:pid", no spaces
  std::string_view label{};
  Millis op_timeout{1'000};  ///< what dropping a doubt about it may take
};

/// Ours. `counted_from` was read before the first byte of the request that got it left.
struct Granted {
  FencingToken fence{};
  Deadline counted_from{};
};

class Doubt;
class Seat;
/// The whole request left and no reply came.
struct Doubtful {
  std::unique_ptr<Doubt> doubt;  ///< never null
  Error error;
};

/// Exactly one of the four outcomes; an Error is proof that nothing was executed.
using Acquisition = std::variant<Granted, Busy, Doubtful, Error>;

struct Renewal {
  RenewOutcome outcome{RenewOutcome::unavailable};
  std::optional<LossCause> cause{};     ///< of lost: gone or taken
  std::optional<FencingToken> fence{};  ///< adopt only
  Deadline counted_from{};              ///< of renewed
  Error error{};                        ///< of unknown and unavailable
};

struct Released {
  ReleaseOutcome outcome{ReleaseOutcome::unavailable};
  std::optional<LossCause> cause{};  ///< of not_held: gone or taken
  Error error{};                     ///< of unknown and unavailable
  bool unheard{false};               ///< released, and the next in the queue could not be told
};

/// A store's part of a Claim: what it needs to go behind the doubtful request. While it lives nothing is withdrawn.
/// Its destructor sends the withdrawal behind the request, without waiting for the answer; nothing where it cannot.
class REDLEASE_EXPORT Doubt {
 public:
  virtual ~Doubt() = default;
  /// Whether retry can go behind the doubtful request. If not: withdraw, then acquire with a fresh token.
  virtual bool can_retry() noexcept = 0;
  /// The same request again with the same token. A doubt that stays is answered as Doubtful; this one is then spent.
  virtual Acquisition retry(const AcquireRequest&, const Limits&) = 0;
  virtual Released withdraw(const Limits&) = 0;
  virtual void abandon() noexcept = 0;
  /// From when on the request is surely not carried out any more: only a withdrawal sent after that is the last word,
  /// unless it went behind the request. Deadline::max() if nobody can know.
  virtual Deadline spent_by() const noexcept { return Deadline::min(); }
  /// What a withdrawal names besides the token, if a place in a queue may be left too. Lives as long as the doubt.
  virtual std::string_view place() const noexcept { return {}; }
};

/// The seam between what a lease means and where it is kept. Implementations are thread-safe, keep every call within
/// its Limits (whose deadline is LeaseClock time), and survive fork: in the child they start afresh.
///
/// Rules that every store keeps: an acquire is idempotent by token; renew and release compare the token atomically;
/// neither renew nor acquire shortens what is kept; renew never creates; fences of a name only grow.
class REDLEASE_EXPORT LeaseStore {
 public:
  virtual ~LeaseStore() = default;
  virtual Acquisition acquire(const AcquireRequest&, const Limits&) = 0;
  virtual Renewal renew(std::string_view key, std::string_view token, Millis ttl, const Limits&) = 0;
  /// As renew, and answers the fence of the grant (a new one if the store has forgotten it).
  virtual Renewal adopt(std::string_view key, std::string_view token, Millis ttl, const Limits&) = 0;
  virtual Released release(std::string_view key, std::string_view token, const Limits&) = 0;
  /// As release, for a lease that others probably wait for: a store may spend a little more to have them hear sooner.
  virtual Released hand_over(std::string_view key, std::string_view token, const Limits& limits) {
    return release(key, token, limits);
  }
  virtual Result<LeaseInfo> inspect(std::string_view key, const Limits&) = 0;
  virtual Result<bool> break_lease(std::string_view key, const Limits&) = 0;
  virtual Result<Fenced> fenced_set(std::string_view key, std::string_view value, FencingToken, const Limits&) = 0;
  virtual Result<Unit> ping(const Limits&) = 0;
  /// For whoever keeps many leases from the background. Must not outlive the store. By default renew() and release()
  /// are called one after the other with 20 ms for all that are due, which suits a store that answers at once; a store
  /// that wraps another hands on the other's.
  virtual std::unique_ptr<Upkeep> upkeep() { return plain_upkeep(*this); }
  /// For a waiter; see seat.hpp. The request's token is not looked at, and what the request points to must live as long
  /// as the seat. By default there is no queue: plain_seat(). A store that wraps another hands on the other's.
  virtual std::unique_ptr<Seat> seat(const AcquireRequest&);
  /// For people: where the leases are kept. Without a password.
  virtual std::string_view server() const noexcept = 0;
};

}  // namespace v0
}  // namespace redlease
