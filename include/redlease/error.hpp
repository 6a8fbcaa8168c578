#pragma once
#include <concepts>
#include <string>
#include <system_error>  // and std::runtime_error, its base
#include <type_traits>
#include <utility>
#include <variant>

#include "redlease/export.hpp"
#include "redlease/types.hpp"

namespace redlease {
inline namespace v0 {

enum class Errc {
  busy = 1,           ///< another holds it (as an exception's code)
  unknown_outcome,    ///< the command left, no reply came
  lost,               ///< the lease is no longer ours
  timed_out,          ///< the deadline passed with the outcome known: nothing executed
  cancelled,          ///< the stop token asked
  resolve_failed,     ///< the host name has no address
  connect_failed,     ///< no address of the host took a connection
  connection_closed,  ///< the server, or something on the way, closed it
  tls_failed,         ///< certificate, handshake, or no TLS at the other end
  denied,             ///< NOAUTH, WRONGPASS, NOPERM; the detail names the rule
  not_ready,     ///< LOADING, READONLY, OOM, NOREPLICAS, MASTERDOWN, CLUSTERDOWN, MISCONF, BUSY, TRYAGAIN: it may pass
  not_a_lease,   ///< the key holds another type
  no_quorum,     ///< fewer than a majority of the servers agreed
  too_few_acks,  ///< fewer replicas than asked for have it
  unsupported,   ///< the server lacks what was asked for
  server_error,  ///< an error reply that is none of the above
  bad_reply,     ///< what came back is no reply to what was asked
  too_many_connections,  ///< ClientOptions::max_connections were all in use until the deadline
};

}  // namespace v0
}  // namespace redlease

template <>
struct std::is_error_code_enum<redlease::Errc> : std::true_type {};

namespace redlease {
inline namespace v0 {

/// The category "redlease". Lives until the process ends.
REDLEASE_EXPORT const std::error_category& category() noexcept;
REDLEASE_EXPORT std::error_code make_error_code(Errc) noexcept;

/// What went wrong. `code` is for programs: an Errc (or, inside a detail, what the system said). `detail` is for
/// people: what happened, to which key, at which server, what was proved about it, what to do. Never a password.
struct Error {
  std::error_code code;
  std::string detail;
};

/// A T or an Error. No operator bool, since a Result<bool> would lie.
template <class T>
class [[nodiscard]] Result {
 public:
  template <class U>
  requires std::same_as<std::remove_cvref_t<U>, T> Result(U&& value)
      : v_(std::in_place_index<0>, std::forward<U>(value)) {}
  Result(Error error) : v_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const noexcept { return v_.index() == 0; }

  /// Throws std::system_error with the error's code and detail if there is none.
  T& value() & { return check(), std::get<0>(v_); }
  const T& value() const& { return check(), std::get<0>(v_); }
  T&& value() && { return check(), std::get<0>(std::move(v_)); }

  /// Throws std::bad_variant_access if there is a value.
  const Error& error() const { return std::get<1>(v_); }

 private:
  void check() const {
    if (const Error* e = std::get_if<1>(&v_)) throw std::system_error(e->code, e->detail);
  }
  std::variant<T, Error> v_;
};

struct Unit {};

/// A LeaseGuard could not be had. `outcome()` tells which of the three ways; `code()` is Errc::busy,
/// Errc::unknown_outcome or the reason for which nothing was executed.
class REDLEASE_EXPORT AcquireError : public std::system_error {
 public:
  AcquireError(AcquireOutcome, Error);
  AcquireOutcome outcome() const noexcept { return outcome_; }
  /// The Error's detail; the code's own message would say it twice.
  const char* what() const noexcept override { return detail_.what(); }

 private:
  AcquireOutcome outcome_;
  std::runtime_error detail_;  // a text whose copies share it
};

/// The lease is no longer ours: stop the work. `code()` is Errc::lost.
class REDLEASE_EXPORT LeaseLost : public std::system_error {
 public:
  explicit LeaseLost(Error);
  /// As AcquireError::what.
  const char* what() const noexcept override { return detail_.what(); }

 private:
  std::runtime_error detail_;
};

}  // namespace v0
}  // namespace redlease
