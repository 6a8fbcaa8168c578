#pragma once
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "redlease/clock.hpp"
#include "redlease/export.hpp"

namespace redlease {
inline namespace v0 {

/// The name of what is leased: the very key on the server, but for ClientOptions::key_prefix.
///
/// 1 to 512 bytes (together with the prefix), any bytes at all, but not ending in `lease:meta`, `lease:queue` or
/// `lease:seen`: those are the helper keys of other leases. Anything else throws std::invalid_argument, a null `const
/// char*` included.
class REDLEASE_EXPORT LeaseKey {
 public:
  static constexpr std::size_t max_size = 512;

  LeaseKey(std::nullptr_t) = delete;
  template <std::convertible_to<std::string_view> S>
  LeaseKey(const S& name) : LeaseKey(view(name), 0) {}

  const std::string& str() const noexcept { return name_; }
  friend auto operator<=>(const LeaseKey&, const LeaseKey&) = default;

 private:
  template <class S>
  static std::string view(const S& name) {
    if constexpr (std::convertible_to<const S&, const char*>) {
      const char* text = name;
      if (text == nullptr) return {};  // refused as an empty name
    }
    return std::string(std::string_view(name));
  }
  LeaseKey(std::string, int);
  std::string name_;
};

/// The secret that says whose a lease is: the value of the key on the server. One token is one acquisition.
/// A type of its own, so that a key is never taken for a token.
class REDLEASE_EXPORT OwnerToken {
 public:
  static constexpr std::size_t max_size = 256;

  /// `<client id>.<nonce>`, 16 + 32 hexadecimal digits from getrandom(2). The client id is one per process and fresh
  /// after fork, the nonce is new each time. Throws std::system_error if the kernel gives no randomness.
  static OwnerToken generate();

  /// A token that was handed over, as printed by the other side: 1 to 256 bytes, else std::invalid_argument.
  explicit OwnerToken(std::string);

  const std::string& str() const noexcept { return value_; }
  friend bool operator==(const OwnerToken&, const OwnerToken&) = default;

 private:
  std::string value_;
};

/// A number that grows with every grant of a name. Hand it to the resource, which refuses anything older than the
/// newest it has seen; that alone stops a writer that was paused past its lease. At most 2^53 - 2, so every language
/// can hold it.
enum class FencingToken : std::uint64_t {};
inline constexpr FencingToken highest_fencing_token{(std::uint64_t{1} << 53) - 2};

/// How a lease was lost. `deadline` once the local deadline has passed; `gone` (the key does not exist) or `taken`
/// (another's token is there) if that was learnt before; `max_hold` when LeaseOptions::max_hold ended it.
enum class LossCause : std::uint8_t { deadline, gone, taken, max_hold };

/// acquired: held from now on. busy: another holds it. unknown: the whole request left and no reply came, so it may be
/// ours on the server. unavailable: proved not executed.
enum class AcquireOutcome : std::uint8_t { acquired, busy, unknown, unavailable };
/// renewed: a new deadline. lost: never to be had back. unknown, unavailable: the deadline stays where it was.
enum class RenewOutcome : std::uint8_t { renewed, lost, unknown, unavailable };
/// released: it was ours until now. not_held: it was not. unknown: the request left and no reply came; the server may
/// still hold the lease, until its ttl. unavailable: proved not executed; the server holds it until its ttl.
enum class ReleaseOutcome : std::uint8_t { released, not_held, unknown, unavailable };

/// For logs: "acquired", "deadline" and so on; "?" for a value that is none of them.
REDLEASE_EXPORT std::string_view to_string(AcquireOutcome) noexcept;
REDLEASE_EXPORT std::string_view to_string(RenewOutcome) noexcept;
REDLEASE_EXPORT std::string_view to_string(ReleaseOutcome) noexcept;
REDLEASE_EXPORT std::string_view to_string(LossCause) noexcept;

}  // namespace v0
}  // namespace redlease
