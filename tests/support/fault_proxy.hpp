#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "redlease/clock.hpp"
#include "support/event_loop.hpp"
#include "support/fault_link.hpp"
#include "support/sockets.hpp"
#include "support/temp_dir.hpp"

namespace redlease {
inline namespace v0 {

/// A listener in this process that forwards to a server and does harm on the way. Thread-safe.
///
/// Connections are numbered from 0 as they come; the newest is the one that most calls mean.
class FaultProxy {
 public:
  enum class Front { tcp, unix_socket };

  explicit FaultProxy(ServerAddress target, Front = Front::tcp);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  const ServerAddress& address() const { return front_; }
  std::string url() const { return front_.url(); }
  std::uint16_t port() const { return front_.port; }

  void on_new(Faults);                  ///< every connection from now on
  void on_next(Faults);                 ///< one connection; more calls queue up. Goes before on_new()
  void set(Faults);                     ///< the newest connection, from now on; its cuts count from its beginning
  void heal();                          ///< no faults: all that live and all to come; what was withheld now passes
  void withhold_requests(bool = true);  ///< the newest connection
  void withhold_replies(bool = true);   ///< the newest connection

  /// Cuts the newest connection after so many more bytes than were delivered until now.
  void cut_after(std::uint64_t up_more, std::uint64_t down_more, bool reset = false);

  void refuse(bool = true);             ///< nobody listens at the address, until refuse(false)
  void drop_all();                      ///< cuts all connections now
  void retarget(ServerAddress target);  ///< for connections to come

  struct Stats {
    std::uint64_t up, down;                    ///< bytes delivered
    std::uint64_t up_received, down_received;  ///< bytes that came in, delivered or not
    bool open;                                 ///< still joined: not cut and neither side has closed
    bool server_done;  ///< the server has closed its side: it has read, and acted on, all that it was sent
  };
  std::size_t connections() const;  ///< ever taken
  Stats stats(std::size_t connection) const;
  Stats newest() const;

  /// Whether, within the limit, the server has finished with every connection that is no longer open. Then its data
  /// tells the truth about what the cut bytes did.
  bool settled(Millis limit = Millis(5000)) const;

 private:
  Deadline prepare(std::vector<pollfd>&);
  void handle();
  void accept_all();
  FaultLink& newest_link() const;

  ServerAddress target_;
  ServerAddress front_;
  TempDir dir_;
  TestFd listener_;
  bool refusing_{};
  Faults for_new_;
  std::deque<Faults> for_next_;
  std::vector<std::unique_ptr<FaultLink>> links_;
  mutable EventLoop loop_;  // last: its thread uses all of the above
};

}  // namespace v0
}  // namespace redlease
