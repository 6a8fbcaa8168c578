#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "support/event_loop.hpp"
#include "support/raw_reply.hpp"
#include "support/sockets.hpp"

namespace redlease {
inline namespace v0 {

/// At the end of an answer: close the connection behind it.
inline constexpr std::string_view hang_up{"\0hang up", 8};

/// A server in this process that says what a test wants said. Thread-safe.
class ScriptedServer {
 public:
  using Command = std::vector<std::string>;
  /// The raw bytes to send; empty: no answer. Called on the server's thread, so it must not ask the server.
  using Script = std::function<std::string(const Command&)>;

  explicit ScriptedServer(Script);
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  const ServerAddress& address() const { return address_; }
  std::string url() const { return address_.url(); }
  std::uint16_t port() const { return address_.port; }

  std::vector<Command> commands() const;  ///< all that came, on whichever connection
  std::size_t connections() const;        ///< ever taken

 private:
  struct Peer {
    TestFd fd;
    RawReader reader;
    bool gone{};
  };
  void handle();
  void serve(Peer&);
  void answer(Peer&, const Command&);

  const Script script_;
  ServerAddress address_;
  TestFd listener_;
  std::vector<Peer> peers_;
  std::size_t connections_{};
  std::vector<Command> commands_;
  mutable EventLoop loop_;  // last: its thread uses all of the above
};

}  // namespace v0
}  // namespace redlease
