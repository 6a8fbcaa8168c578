#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "redlease/clock.hpp"

namespace redlease {
inline namespace v0 {

/// What happens to the bytes that go one way.
struct LaneFaults {
  bool withhold{};                         ///< nothing passes; what arrives is kept until this is lifted
  Millis delay{0};                         ///< each byte is delivered so long after it arrived
  std::size_t dribble{};                   ///< so many bytes at a time (0: all) …
  Millis every{1};                         ///< … and so long in between
  std::optional<std::uint64_t> cut_after;  ///< of the connection's bytes this way, so many are delivered and no more
};

/// The bytes on their way in one direction. Does no reading and no polling.
class FaultLane {
 public:
  LaneFaults faults;

  void arrived(std::string_view bytes);
  void ended() { source_ended_ = true; }

  /// Hands what is due to the socket. When it must wait for a time, that is next_due(); for the socket, blocked().
  void deliver(int destination);

  bool has_ended() const { return source_ended_; }
  /// The sender closed and everything it had sent was delivered or dropped.
  bool finished() const { return source_ended_ && chunks_.empty(); }
  bool cut_reached() const { return faults.cut_after && delivered_ >= *faults.cut_after; }
  bool blocked() const { return blocked_; }
  Deadline next_due() const;
  std::uint64_t received_bytes() const { return received_; }
  std::uint64_t delivered_bytes() const { return delivered_; }

 private:
  struct Chunk {
    Deadline arrival;
    std::string bytes;
  };
  Deadline due(const Chunk&) const;

  std::deque<Chunk> chunks_;
  Deadline next_dribble_{Deadline::min()};
  std::uint64_t received_{};
  std::uint64_t delivered_{};
  bool blocked_{};
  bool source_ended_{};
};

}  // namespace v0
}  // namespace redlease
