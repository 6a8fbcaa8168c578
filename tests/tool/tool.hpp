#pragma once
#include <sys/types.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "redlease/clock.hpp"
#include "support/raw_client.hpp"
#include "support/temp_dir.hpp"

namespace redlease {
inline namespace v0 {

/// How one run of the tool is to be set up.
struct ToolSetup {
  std::string url{};                         ///< REDLEASE_URL, if not empty
  std::map<std::string, std::string> env{};  ///< besides; what else redlease reads is unset
  std::string input{};                       ///< its standard input; then it ends
  bool stuck_output{false};                  ///< its standard output is a full pipe that is not read while it lives
  bool closed_output{false};                 ///< its standard output is a pipe that nobody reads
  std::optional<std::string> output_file{};  ///< its standard output goes there instead
  std::function<void()> before_exec{};       ///< in the forked process, once its descriptors are set up
};

struct ToolResult {
  int exit{-1};  ///< minus the signal that ended it
  std::string out, err;
};

/// The real binary, running. Ends with the object, by SIGKILL if need be.
class Tool {
 public:
  explicit Tool(const std::vector<std::string>& arguments, const ToolSetup& = {});
  ~Tool();
  Tool(const Tool&) = delete;
  Tool& operator=(const Tool&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int) const;
  /// What it has printed so far.
  std::string out() const;
  std::string err() const;
  /// Reads what stands in a stuck output.
  void unstick() const;
  /// Until it ends. Kills it (exit -9) if it is not done in time.
  ToolResult wait(Millis limit = Millis(30'000));

 private:
  bool reap(int options);

  TempDir dir_;
  int unread_{-1};
  pid_t pid_{-1};
  std::optional<int> status_;
};

/// For exec: null at the end; valid as long as the words.
std::vector<char*> pointers(std::vector<std::string>& words);

/// Start to end.
ToolResult run_tool(const std::vector<std::string>& arguments, const ToolSetup& = {}, Millis limit = Millis(30'000));

/// Whether a tool is connected to the server and has introduced itself.
inline bool tool_is_connected(RawClient& server) {
  return server.command({"CLIENT", "LIST"}).text.find(" name=redlease-cli ") != std::string::npos;
}

/// Asks every 5 ms until it is so; false if it is not in time.
template <class Condition>
bool becomes(Condition condition, Millis limit = Millis(10'000)) {
  for (const Deadline end = deadline_in(limit); !condition();) {
    if (LeaseClock::now() >= end) return false;
    ::usleep(5'000);
  }
  return true;
}

}  // namespace v0
}  // namespace redlease
