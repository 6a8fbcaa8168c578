#pragma once
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/raw_client.hpp"

namespace redlease {
inline namespace v0 {

struct MonitorLine {
  std::string line;  ///< as the server wrote it
  int db{};
  std::string client;  ///< "127.0.0.1:port", "unix:path", or "lua" for what a script ran
  std::vector<std::string> argv;

  /// In capitals; the server tells it as it was sent.
  std::string name() const;
  bool by_script() const { return client == "lua"; }
};

/// Throws std::runtime_error for a line that is none of MONITOR's.
MonitorLine parse_monitor_line(std::string line);

/// What a server is told, by whom and in which order. For one thread. AUTH and other administration is not shown by the
/// server.
class Monitor {
 public:
  explicit Monitor(const ServerAddress&, const std::string& password = "");
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  /// Returns when all is seen that was answered to anybody before. Throws std::runtime_error if the server is gone.
  void sync();
  /// All since the last clear(), after a sync().
  std::vector<MonitorLine> lines();
  /// Forgets all that was seen, after a sync().
  void clear();

 private:
  void collect();

  RawClient watcher_;
  RawClient marker_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string awaited_;  // by sync(); empty once seen
  std::vector<MonitorLine> lines_;
  std::exception_ptr failure_;
  bool stopping_{};
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace v0
}  // namespace redlease
