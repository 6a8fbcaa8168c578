#pragma once
#include <concepts>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "redlease/error.hpp"
#include "redlease/export.hpp"
#include "redlease/lease_info.hpp"
#include "redlease/types.hpp"

namespace redlease {
inline namespace v0 {

struct LeaseMaker;  // the library's own door to the constructors below

/// The right to act under a key until deadline(). Has the verbs and no thread: nothing renews it but renew().
///
/// |          | held() | renew()                | release()           | time passes deadline() |
/// |----------|--------|------------------------|---------------------|------------------------|
/// | held     | true   | held on, or lost       | released            | lost (deadline)        |
/// | adopted  | false  | held, or lost          | as the server finds | adopted                |
/// | lost     | false  | lost, nothing is sent  | not_held, see below | lost                   |
/// | released | false  | lost, nothing is sent  | not_held            | released               |
///
/// Move-only; a moved-from Lease is released: of it only the verbs, held(), remaining(), loss() and fencing_token() may
/// be called. Not tied to a thread, not thread-safe. In a forked child nothing is held and the verbs do nothing.
class [[nodiscard]] REDLEASE_EXPORT Lease {
 public:
  Lease(Lease&&) noexcept;
  Lease& operator=(Lease&&) noexcept;  ///< releases what was held before

  /// Releases, unless released, abandoned or known to be gone or taken. Takes at most one op_timeout; never throws.
  ~Lease();

  /// Whether the lease is ours now, as far as this process can know without asking: before the deadline, not lost, not
  /// released. Advice: a process may be paused right behind the answer. Only the fencing token protects against that.
  bool held() const noexcept;

  /// Until when: counted from before the request's first byte left, plus ttl, less the drift margin.
  Deadline deadline() const noexcept;

  /// Until the deadline, rounded down; 0 if not held.
  Millis remaining() const noexcept;

  const LeaseKey& key() const noexcept;
  const OwnerToken& token() const noexcept;

  /// Captured at the grant. None while an adopted lease has not been renewed, or if it is empty.
  std::optional<FencingToken> fencing_token() const noexcept;

  /// How it was lost, if it was. `deadline` from the moment it passes; `gone` or `taken` if a renew() or release()
  /// learnt that before.
  std::optional<LossCause> loss() const noexcept;

  /// Asks the server for another full ttl from now. Takes at most one op_timeout and never goes on past the deadline.
  /// After `unknown` and `unavailable` the deadline is where it was: try again while held(). Allocates nothing while
  /// all goes well.
  RenewOutcome renew() noexcept;

  /// Gives the lease back. held() is false from before the first byte leaves, whatever the outcome. Takes at most one
  /// op_timeout. A second release is not_held. One whose deadline has passed is still given back on the server (by
  /// token, so never another's) and answers not_held. After `unknown` and `unavailable` the Client withdraws it in the
  /// background until the server has answered or the ttl has passed. Allocates nothing while all goes well.
  ReleaseOutcome release() noexcept;

  /// Forgets the lease without a word to the server, which keeps it until its ttl: before handing the token to another
  /// process (Client::adopt).
  void abandon() noexcept;

  /// Why the last renew() or release() did not succeed; empty if it did.
  const Error& last_error() const noexcept;

 private:
  friend struct LeaseMaker;
  struct State;
  explicit Lease(std::unique_ptr<State>) noexcept;
  std::unique_ptr<State> state_;
};

class AcquireResult;

/// An acquire of unknown outcome: the whole request left, no reply came. It carries the cure. While it lives nothing is
/// withdrawn and its connection stays open; do one of retry, withdraw and abandon, or drop it.
///
/// Move-only, not thread-safe. A moved-from Claim has nothing to withdraw.
class [[nodiscard]] REDLEASE_EXPORT Claim {
 public:
  Claim(Claim&&) noexcept;
  Claim& operator=(Claim&&) noexcept;  ///< drops what was claimed before

  /// Sends the withdrawal behind the doubtful request on the same connection and does not wait for the answer; the
  /// Client makes sure of it in the background, until the server has answered or the ttl has passed. Never throws.
  ~Claim();

  const OwnerToken& token() const noexcept;

  /// What happened, to which key, at which server.
  const Error& error() const noexcept;

  /// Asks again, behind the doubtful request on its connection and with the same token: it finds its own lease and
  /// calls it acquired. If that connection is dead, the token is withdrawn and a fresh one is tried.
  AcquireResult retry(Deadline) &&;

  /// Takes back whatever the doubtful request may have got. released and not_held both mean: nothing is left of it.
  /// After anything else the Client goes on in the background.
  ReleaseOutcome withdraw(Deadline) &&;

  /// Forgets it, so that its token can be handed over. What the request may have got stands until its ttl.
  void abandon() && noexcept;

 private:
  friend struct LeaseMaker;
  struct State;
  explicit Claim(std::unique_ptr<State>) noexcept;
  std::unique_ptr<State> state_;
};

/// Proved not executed: nothing of ours is on the server. `error` says why and what to do.
struct Unavailable {
  Error error;
};

/// What an acquire came to: exactly one of four, and match() does not compile with one left out.
class [[nodiscard]] REDLEASE_EXPORT AcquireResult {
 public:
  AcquireResult(Lease l) : v_(std::move(l)) {}
  AcquireResult(Busy b) : v_(std::move(b)) {}
  AcquireResult(Claim c) : v_(std::move(c)) {}
  AcquireResult(Unavailable u) : v_(std::move(u)) {}

  AcquireOutcome outcome() const noexcept { return static_cast<AcquireOutcome>(v_.index()); }

  /// Calls the one handler that fits, with the Lease, Busy, Claim or Unavailable moved in. All return the same type.
  template <class OnLease, class OnBusy, class OnClaim, class OnUnavailable>
  auto match(OnLease&& l, OnBusy&& b, OnClaim&& c, OnUnavailable&& u) && -> std::invoke_result_t<OnLease, Lease> {
    static_assert(std::is_invocable_v<OnBusy, Busy>, "match: the second handler takes a Busy");
    static_assert(std::is_invocable_v<OnClaim, Claim>, "match: the third handler takes a Claim");
    static_assert(std::is_invocable_v<OnUnavailable, Unavailable>, "match: the fourth handler takes an Unavailable");
    using R = std::invoke_result_t<OnLease, Lease>;
    static_assert(std::same_as<R, std::invoke_result_t<OnBusy, Busy>> &&
                      std::same_as<R, std::invoke_result_t<OnClaim, Claim>> &&
                      std::same_as<R, std::invoke_result_t<OnUnavailable, Unavailable>>,
                  "match: all four handlers return the same type");
    switch (v_.index()) {
      case 0: return std::forward<OnLease>(l)(std::get<0>(std::move(v_)));
      case 1: return std::forward<OnBusy>(b)(std::get<1>(std::move(v_)));
      case 2: return std::forward<OnClaim>(c)(std::get<2>(std::move(v_)));
    }
    return std::forward<OnUnavailable>(u)(std::get<3>(std::move(v_)));
  }

  /// The one named, or nothing. Taking the Lease or the Claim leaves an empty one behind.
  std::optional<Lease> lease() &&;
  std::optional<Claim> claim() &&;
  const Busy* busy() const noexcept { return std::get_if<Busy>(&v_); }
  const Unavailable* unavailable() const noexcept { return std::get_if<Unavailable>(&v_); }

 private:
  std::variant<Lease, Busy, Claim, Unavailable> v_;
};

}  // namespace v0
}  // namespace redlease
