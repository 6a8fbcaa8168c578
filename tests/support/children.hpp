#pragma once
#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "redlease/clock.hpp"

namespace redlease {
inline namespace v0 {

/// Forked processes that each run fn(index) and leave by _exit: with 0, or with 1 and its message on stderr if fn
/// throws. A gtest assertion that fails in a child is not seen here: throw, or use a SharedPage.
///
/// They die with the thread that made them. Make them before FaultProxy, ScriptedServer, Monitor and other threads if
/// the children are to start threads: ThreadSanitizer does not allow that after a fork from among several.
class Children {
 public:
  Children(int count, const std::function<void(int)>& fn);
  ~Children();  ///< kills the rest
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  void kill9(int index);  ///< returns when it is gone; no effect if it already has ended
  pid_t pid(int index) const { return pids_.at(static_cast<std::size_t>(index)); }

  /// Waits for all; kills those that are not done in time. The exit statuses, or minus the signal that ended it.
  std::vector<int> wait(Millis limit = Millis(60'000));

 private:
  bool reap(std::size_t index, int options);

  std::vector<pid_t> pids_;
  std::vector<bool> reaped_;
  std::vector<int> statuses_;
};

/// The exit statuses of `count` children, or minus the signal that ended one (-9: it was not done in time).
std::vector<int> run_children(int count, const std::function<void(int)>& fn, Millis limit = Millis(60'000));

}  // namespace v0
}  // namespace redlease
