#pragma once
#include <sys/types.h>

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tool/tool.hpp"

namespace redlease {
inline namespace v0 {

/// The real binary on a terminal of its own. Ends with the object, by SIGKILL if need be.
class Terminal {
 public:
  Terminal(const std::vector<std::string>& arguments, const std::string& url, unsigned short rows = 24,
           unsigned short columns = 80);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int) const;
  void resize(unsigned short rows, unsigned short columns) const;
  /// All that has come so far.
  std::string seen() const;
  /// What of it begins where the cursor was last sent home: the lines of the last picture, without colours.
  std::vector<std::string> picture() const;
  /// Minus the signal that ended it. Kills it (-9) if it is not done in time.
  int wait(Millis limit = Millis(20'000));

 private:
  pid_t pid_{-1};
  int master_{-1};
  mutable std::mutex mutex_;
  std::string seen_;
  std::jthread reader_;
};

}  // namespace v0
}  // namespace redlease
