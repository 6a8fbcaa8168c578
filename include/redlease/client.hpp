#pragma once
#include <cstddef>
#include <memory>
#include <stop_token>
#include <string_view>

#include "redlease/error.hpp"
#include "redlease/export.hpp"
#include "redlease/lease.hpp"
#include "redlease/lease_info.hpp"
#include "redlease/options.hpp"
#include "redlease/types.hpp"

namespace redlease {
inline namespace v0 {

class LeaseStore;

/// Where leases come from: one server, reached through a pool of connections.
///
/// Thread-safe. Lazy: constructing it needs no server, and connections are made when they are needed. After fork() it
/// may be used in the child, where it starts afresh. Leases may outlive it; releasing them still works.
class REDLEASE_EXPORT Client {
 public:
  explicit Client(std::nullptr_t, ClientOptions = {}) = delete;

  /// `redis://[user[:password]@]host[:port][/db]`, `rediss://…` (TLS), `unix:///path[?db=n]`, `memory:` (private to
  /// this Client) or `memory:name` (shared within the process). IPv6 literals in brackets; %xx in user, password and
  /// path. Throws std::invalid_argument for any other URL and for options out of bounds.
  explicit Client(std::string_view url, ClientOptions = {});

  /// On a store of your own; null is std::invalid_argument.
  explicit Client(std::shared_ptr<LeaseStore>, ClientOptions = {});
  /// Ends the renewals of its guards, whose leases are then lost at their deadline, and gives what is still to be
  /// withdrawn one op_timeout: the longest that was used. Waits for an on_lost or stop callback that is going on,
  /// except from inside it.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Tries once; LeaseOptions::wait is ignored. Takes at most one op_timeout. Throws std::invalid_argument, before
  /// anything is sent, if the options have a flaw or prefix and name are too long together.
  AcquireResult try_acquire(const LeaseKey&, const LeaseOptions& = {});

  /// Keeps trying until LeaseOptions::wait has passed, through all that may pass: busy, not ready, connection trouble,
  /// doubt. What cannot pass (denied, not a lease, unsupported) is told at once. The first attempt always gets its
  /// op_timeout. At the end the last truth is told: unknown if doubt is left, busy if the last answer was busy, else
  /// unavailable. A stop ends it within 50 ms: unavailable (cancelled) if nothing is left on the server, else unknown.
  /// Throws as try_acquire.
  AcquireResult acquire(const LeaseKey&, const LeaseOptions& = {}, std::stop_token = {});

  /// Takes over a lease whose token another process handed on (it called abandon() first). Sends nothing: until renew()
  /// succeeds it is not held, has no loss and no fence; dropped before that it releases nothing. Throws as try_acquire.
  Lease adopt(const LeaseKey&, const OwnerToken&, const LeaseOptions& = {});

  /// Who holds it, how long still, what the last fence was. Takes at most 1 s.
  Result<LeaseInfo> inspect(const LeaseKey&);

  /// Takes a lease from whoever holds it, who learns of it at the next renewal. True: something was removed. A key of
  /// another type, or a value too long to be a token, is refused (not_a_lease). Takes at most 1 s.
  Result<bool> break_lease(const LeaseKey&);

  /// Whether the server answers. Takes at most 1 s.
  Result<Unit> ping();

 private:
  friend struct LeaseMaker;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace v0
}  // namespace redlease
