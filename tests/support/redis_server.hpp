#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "redlease/clock.hpp"
#include "support/sockets.hpp"
#include "support/temp_dir.hpp"

namespace redlease {
inline namespace v0 {

/// How far up a restarted server must be: any answer, LOADING too, or with all its data there.
enum class Await : bool { answer, loaded };

/// A private server in a directory of its own, on a unix socket and on a port of 127.0.0.1, without persistence.
///
/// REDLEASE_TEST_SERVER names the program (default redis-server); several words are a wrapper's command line, which
/// must end by exec. A server that does not come up is a std::runtime_error with the end of its log. It dies with the
/// thread that made it, so make it on one that lives as long as the test. Not thread-safe.
class RedisServer {
 public:
  /// Lines for redis.conf, which come last and so win.
  explicit RedisServer(std::vector<std::string> config = {});
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  ServerAddress tcp() const { return {{}, port_}; }
  ServerAddress unix_socket() const { return {dir() + "/redis.sock", 0}; }
  std::string url_tcp() const { return tcp().url(); }
  std::string url_unix() const { return unix_socket().url(); }
  std::uint16_t port() const { return port_; }
  std::string socket_path() const { return unix_socket().path; }
  /// For a test's own files: gone with the server.
  const std::string& dir() const { return dir_.path(); }
  pid_t pid() const { return pid_; }  ///< -1 while it is down
  std::string log() const;

  /// SIGSTOP. When this returns it really stands still; connections to it are still taken, by the kernel.
  void stop();
  void cont();
  void kill9();      ///< no goodbye; returns when it is gone
  void terminate();  ///< SIGTERM, upon which it saves its data; returns when it is gone

  /// Down (if it is up) and up again at the same addresses; empty, or with the data that it had when it was terminated.
  void restart(bool keep_data = false, Await = Await::loaded);

 private:
  void write_config() const;
  void launch(Await);
  void spawn();
  void await_answer(Await);
  void signal_all(int signal) const;
  /// What waitpid tells within the limit, or 0.
  int await_change(int options, Millis limit);
  bool await_exit(Millis limit);

  std::vector<std::string> config_;
  TempDir dir_;
  std::uint16_t port_{};
  pid_t pid_{-1};
};

}  // namespace v0
}  // namespace redlease
