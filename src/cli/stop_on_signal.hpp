#pragma once
#include <atomic>
#include <stop_token>
#include <thread>

namespace redlease::cli {

/// Turns SIGINT, SIGTERM, SIGQUIT and SIGHUP into a stop, so that a command which waits can leave in order. Make it
/// before the first Client: threads made later must not take these signals themselves. One at a time.
class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal() { (void)end(); }
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  std::stop_token token() const { return stop_.get_token(); }
  /// The last that came to any of them, or 0: for whoever writes while a reader stands still.
  static int last() noexcept;
  /// The one that came, or 0.
  int signal() const noexcept { return signal_.load(); }
  /// Listens no more, and tells for the last time; what comes later stays pending.
  int end() noexcept;

 private:
  std::stop_source stop_;
  std::atomic<int> signal_{0};
  std::jthread listener_;
};

}  // namespace redlease::cli
