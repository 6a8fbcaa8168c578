#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "redlease/clock.hpp"
#include "redlease/error.hpp"
#include "redlease/export.hpp"
#include "redlease/wire/endpoint.hpp"
#include "redlease/wire/exchange.hpp"
#include "redlease/wire/resp.hpp"
#include "redlease/wire/transport.hpp"

namespace redlease {
inline namespace v0 {

/// One connection to one server, introduced (AUTH, SELECT, CLIENT SETNAME, TIME) and ready for commands. Not
/// thread-safe.
///
/// A call that times out leaves its reply owed; it never becomes the answer to a later question, since replies come in
/// order and are counted. A pool takes back only what owes nothing.
class REDLEASE_EXPORT Connection {
 public:
  /// Connects and introduces itself in one round trip. A refused AUTH or SELECT is an error, a refused SETNAME or TIME
  /// is not.
  static Result<std::unique_ptr<Connection>> open(const Endpoint&, const Limits&);

  /// Introduces itself over a transport that stands already.
  static Result<std::unique_ptr<Connection>> open(const Endpoint&, std::unique_ptr<Transport>, const Limits&);

  /// Sends one command and waits for its reply, behind those that are still owed, which it passes over. `answered`: see
  /// reply(), which may be an error reply. Otherwise see error(). Requires !dead(). Allocates nothing while all goes
  /// well and frame and reply are small. With several `commands` in the frame the last one's reply counts.
  Delivery call(std::string_view frame, const Limits& limits, std::size_t commands = 1);

  /// Sends commands whose replies are owed from then on. True if all of it left; otherwise see error().
  bool send(std::string_view frame, const Limits& limits, std::size_t commands = 1);

  /// The next of the replies owed, if it has come; valid until the next call of anything. Never blocks. Nothing also if
  /// the connection is dead: see error().
  const Reply* next_owed() noexcept;

  /// What the server says without being asked, as it does to subscribers: the next of it, within the limits; valid
  /// until the next call of anything. Nothing also if the connection is dead: see error(). Requires that no reply is
  /// owed.
  const Reply* hear(const Limits&) noexcept;

  const Reply& reply() const noexcept { return reader_.reply(); }
  const Error& error() const noexcept { return error_; }
  /// For people: where this goes to.
  const std::string& server() const noexcept { return server_; }

  /// A call failed on it: it owes replies or is dead.
  bool broken() const noexcept { return dead_ || owed_ > 0; }
  /// Nothing may follow: it is closed, or its stream is beyond repair.
  bool dead() const noexcept { return dead_; }

  /// Nothing has come that nobody asked for, and the server has not closed it. Never blocks.
  bool quiet() noexcept { return !broken() && reader_.empty() && transport_->quiet(); }

  /// Passes over what has come of the replies owed, without waiting. True when none is owed any more or the connection
  /// is dead.
  bool settled() noexcept;

  /// To be polled for replies; -1 if there is nothing to poll.
  int descriptor() const noexcept { return transport_->descriptor(); }

  /// A buffer for the caller's frames, used again and again.
  std::string& frame() noexcept { return frame_.clear(), frame_; }

  /// The server's clock is not further on than this now: microseconds since its epoch. Nothing if it never told.
  std::optional<std::int64_t> server_time_at_most(Deadline now) const noexcept;
  /// By how much that may be too far on: the round trip in which it was told, and 0.2 % of the time since, as clocks
  /// drift.
  LeaseClock::duration server_time_error(Deadline now) const noexcept;
  /// Asks anew. An error if that could not be done; a server that refuses to tell is none.
  std::optional<Error> ask_time(const Limits&);
  /// The server said `micros` in answer to something sent after `before`; the answer was here at `after`.
  void saw_server_time(Deadline before, Deadline after, std::int64_t micros) noexcept;

 private:
  Connection(const Endpoint&, std::unique_ptr<Transport>);
  std::optional<Error> introduce(const Endpoint&, const Limits&);
  bool await(Exchange&, const Limits&);
  void fail(const Io&, const Exchange&);
  void no_reply();
  void saw_time_reply(Deadline before) noexcept;

  std::unique_ptr<Transport> transport_;
  std::string server_;
  ReplyReader reader_;
  std::string frame_;
  Error error_;
  std::size_t owed_{0};
  bool dead_{false};
  struct ServerTime {
    Deadline before;
    std::int64_t micros;
    LeaseClock::duration error;
  };
  std::optional<ServerTime> server_time_;
};

}  // namespace v0
}  // namespace redlease
