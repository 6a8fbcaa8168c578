#pragma once
#include <cstddef>
#include <cstdint>

namespace redlease {
inline namespace v0 {

/// What is proved about a request.
enum class Delivery : std::uint8_t {
  not_executed,  ///< some byte of it never left: a server never runs an incomplete command
  in_doubt,      ///< all of it left and its reply did not come
  answered,      ///< its reply is here
};

/// One request on its way: how much of it has left, how many replies come before its own. A value without I/O.
class Exchange {
 public:
  /// `owed`: replies to earlier requests on the same connection that were not awaited and come first.
  constexpr Exchange(std::size_t frame_size, std::size_t owed) noexcept : left_(frame_size), due_(owed + 1) {}

  constexpr void wrote(std::size_t bytes) noexcept { left_ -= bytes < left_ ? bytes : left_; }

  /// A reply came. True if it is this request's own; the others are for requests that nobody waits for any more.
  constexpr bool saw_reply() noexcept { return due_ > 0 && --due_ == 0; }

  constexpr std::size_t left() const noexcept { return left_; }
  constexpr std::size_t due() const noexcept { return due_; }
  constexpr Delivery delivery() const noexcept {
    if (left_ > 0) return Delivery::not_executed;
    return due_ > 0 ? Delivery::in_doubt : Delivery::answered;
  }

 private:
  std::size_t left_;
  std::size_t due_;
};

}  // namespace v0
}  // namespace redlease
