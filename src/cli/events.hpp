#pragma once
#include "redlease/clock.hpp"

namespace redlease::cli {

/// What a process that runs a command has to react to, in one place to wait at: signals, a time, and a word from
/// another thread. While it lives, signals come here and nowhere else, those excepted that tell of a fault in this
/// process itself. Make it where no other thread takes signals; one at a time.
class Events {
 public:
  Events();
  ~Events();
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  /// Until a signal comes, wake() is called or the time has come; a machine's suspension counts.
  void wait(Deadline until);
  /// The next signal that has come; 0: none.
  int next_signal();
  /// From any thread.
  void wake() noexcept;

  /// Lets a signal that was sent to this process do what it does by itself; for those that stop it.
  static void let_through(int signal);

 private:
  int signals_{-1}, timer_{-1}, bell_{-1};
};

}  // namespace redlease::cli
