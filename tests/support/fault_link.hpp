#pragma once
#include <poll.h>

#include <vector>

#include "redlease/clock.hpp"
#include "support/fault_lane.hpp"
#include "support/sockets.hpp"

namespace redlease {
inline namespace v0 {

/// What happens on one connection: `up` from the client to the server, `down` back.
///
/// A connection is cut once every `cut_after` that is set has been reached: exactly those bytes are delivered, then it
/// is closed towards both. The server always sees an orderly end behind the last byte, so it acts on what it got.
struct Faults {
  LaneFaults up{}, down{};
  bool reset{};  ///< a cut gives the client a RST in place of an orderly end (TCP only)
};

/// One connection through a FaultProxy. Lives on the proxy's thread.
class FaultLink {
 public:
  FaultLink(TestFd client, const ServerAddress& target, const Faults&);

  void set(const Faults&);
  FaultLane& up() { return up_; }
  FaultLane& down() { return down_; }
  void cut();

  /// Adds the sockets to wait for; returns the time to wait for.
  Deadline prepare(std::vector<pollfd>&) const;
  /// Moves all that can be moved now.
  void pump();

  bool open() const { return !cut_ && !up_.has_ended() && !down_.has_ended(); }
  bool server_done() const { return down_.has_ended(); }
  void reset_at_cut(bool reset) { reset_ = reset; }

 private:
  void receive();
  void pass_on_ends();

  TestFd client_;
  TestFd server_;
  FaultLane up_;
  FaultLane down_;
  bool reset_{};
  bool cut_{};
  bool server_told_{};  // that no more comes from us
};

}  // namespace v0
}  // namespace redlease
