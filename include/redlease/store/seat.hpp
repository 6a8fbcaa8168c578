#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <variant>

#include "redlease/clock.hpp"
#include "redlease/error.hpp"
#include "redlease/export.hpp"
#include "redlease/lease_info.hpp"
#include "redlease/plan/wait_plan.hpp"
#include "redlease/store/lease_store.hpp"
#include "redlease/types.hpp"

namespace redlease {
inline namespace v0 {

/// One waiter at a store, from its first question until it holds the lease or has given up. Used by one thread; must
/// not outlive the store or what its request points to.
class REDLEASE_EXPORT Seat {
 public:
  /// Another holds it, and this waiter has a place in the queue.
  struct Queued {
    Busy busy;
    WaitPlan::Place place;
  };
  /// The whole request left and no reply came. The Seat keeps what it needs to ask again.
  struct InDoubt {
    Error error;
  };
  using Answer = std::variant<Granted, Busy, Queued, InDoubt, Error>;

  /// A grant that was heard. Fence 0: no more than a hint that asking is worth while.
  struct Grant {
    FencingToken fence{};
    std::int64_t server_time{};
  };
  enum class Silence : std::uint8_t { time_is_up, stopped, inbox_lost };
  using Heard = std::variant<Silence, Grant>;

  enum class Subscribed : std::uint8_t { yes, no, refused };

  virtual ~Seat() = default;

  /// What the waiter is known by. May change when it asks.
  virtual const OwnerToken& token() const noexcept = 0;
  /// Whether the store has a queue.
  virtual bool has_queue() const noexcept = 0;
  /// Whether it can be woken.
  virtual bool has_inbox() const noexcept = 0;

  /// Asks for the lease, behind whatever was asked before. A waiter keeps the place it has. `lifetime`: how long a
  /// place is good for without being asked for again.
  virtual Answer ask(Ask how, Millis lifetime, const Limits&) = 0;
  /// Gets an inbox in place of the one it has, if any.
  virtual Subscribed subscribe(const Limits&) = 0;
  /// Until something is heard that concerns this waiter, the inbox is lost, or the limits are reached. Without an inbox
  /// until the limits.
  virtual Heard listen(const Limits&) = 0;
  /// Gives up: leaves the queue, and gives back a lease that was granted meanwhile. After this it never asks again.
  virtual Released leave(const Limits&) = 0;

  /// From when on nothing that was asked and not answered is carried out any more; Deadline::min(): all was answered.
  virtual Deadline spent_by() const noexcept = 0;
  /// See Doubt::place; lives until the next call.
  virtual std::string_view place() const noexcept { return {}; }
  /// What is in doubt, for whoever takes care of it; the Seat is over. Only after InDoubt or a leave of unknown
  /// outcome.
  virtual std::unique_ptr<Doubt> doubt() = 0;
};

/// For stores without a queue: asks by acquire(), behind a doubt by Doubt::retry, and with a fresh token where that
/// cannot be. The store must outlive it.
REDLEASE_EXPORT std::unique_ptr<Seat> plain_seat(LeaseStore&, const AcquireRequest&);

}  // namespace v0
}  // namespace redlease
