#pragma once
#include <poll.h>

#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "redlease/clock.hpp"
#include "support/sockets.hpp"

namespace redlease {
inline namespace v0 {

/// One thread that owns everything its tasks touch, so that nothing else needs a lock.
class EventLoop {
 public:
  EventLoop();
  ~EventLoop() { stop(); }

  /// Starts the thread. Before each wait `prepare` names the sockets and the time to wait for; after it `handle` looks
  /// at them.
  void start(std::function<Deadline(std::vector<pollfd>&)> prepare, std::function<void()> handle);
  void stop();

  /// Runs the task on the thread, between two waits, and returns when it and another `handle` are done.
  void run(std::function<void()> task);

 private:
  void loop(const std::stop_token&);
  void wake() const;

  std::function<Deadline(std::vector<pollfd>&)> prepare_;
  std::function<void()> handle_;
  TestFd wake_;
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;
  std::jthread thread_;
};

}  // namespace v0
}  // namespace redlease
