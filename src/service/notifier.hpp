#pragma once
#include <functional>
#include <memory>

namespace redlease {
inline namespace v0 {

// Calls the program's own functions on threads of their own, so that a slow one holds up nobody: as many threads as
// there are calls going on, up to most_threads, and none when nothing was called for a while. Thread-safe.
class Notifier {
 public:
  static constexpr int most_threads = 64;

  Notifier();
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;
  ~Notifier() { close(); }

  // Calls it soon. Throws std::bad_alloc, or std::system_error if there is no thread and none can be started.
  void post(std::function<void()> call);

  // Waits until everything posted was called. From inside a call: until everything else was.
  void close() noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;  // also the threads': a call may end this object's life
};

}  // namespace v0
}  // namespace redlease
