#include "cli/replies.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>

namespace redlease::cli {

const Reply* next_reply(Connection& connection, const Limits& limits) {
  constexpr Millis most{50};  // nothing wakes it when a stop is asked for
  for (;;) {
    if (const Reply* reply = connection.next_owed()) return reply;
    const Deadline now = LeaseClock::now();
    if (connection.dead() || limits.stop.stop_requested() || now >= limits.deadline) return nullptr;
    pollfd socket{connection.descriptor(), POLLIN, 0};
    ::poll(&socket, 1,
           static_cast<int>(std::min<Millis>(std::chrono::ceil<Millis>(limits.deadline - now), most).count()));
  }
}

}  // namespace redlease::cli
