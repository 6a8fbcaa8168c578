#include "support/fault_lane.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace redlease {
inline namespace v0 {

void FaultLane::arrived(std::string_view bytes) {
  received_ += bytes.size();
  chunks_.push_back({LeaseClock::now(), std::string(bytes)});
}

Deadline FaultLane::due(const Chunk& chunk) const {
  return std::max(deadline_after(chunk.arrival, faults.delay), faults.dribble > 0 ? next_dribble_ : Deadline::min());
}

Deadline FaultLane::next_due() const {
  if (chunks_.empty() || faults.withhold || blocked_) return Deadline::max();
  return due(chunks_.front());
}

void FaultLane::deliver(int destination) {
  blocked_ = false;
  while (!chunks_.empty() && !faults.withhold) {
    if (cut_reached()) {
      chunks_.clear();
      return;
    }
    Chunk& chunk = chunks_.front();
    const Deadline now = LeaseClock::now();
    if (due(chunk) > now) return;

    std::size_t size = chunk.bytes.size();
    if (faults.dribble > 0) size = std::min(size, faults.dribble);
    if (faults.cut_after)
      size = static_cast<std::size_t>(std::min<std::uint64_t>(size, *faults.cut_after - delivered_));
    const ssize_t sent = ::send(destination, chunk.bytes.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      blocked_ = errno == EAGAIN || errno == EINTR;
      if (!blocked_) chunks_.clear();  // the receiver is gone
      return;
    }
    delivered_ += static_cast<std::uint64_t>(sent);
    next_dribble_ = deadline_after(now, faults.every);
    chunk.bytes.erase(0, static_cast<std::size_t>(sent));
    if (chunk.bytes.empty()) chunks_.pop_front();
  }
}

}  // namespace v0
}  // namespace redlease
