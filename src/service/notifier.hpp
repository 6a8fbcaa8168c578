#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace redlease {
inline namespace v0 {

// Calls the program's own functions on threads of their own, so that a slow one holds up nobody: as many threads as
// there are calls going on, within bounds, and none when nothing was called for a while. Thread-safe.
class Notifier {
 public:
  // Work is stopped before anybody is told that it had to be. `most` on_lost go on at once, which leaves as many
  // threads to what stops work.
  enum class Kind : std::uint8_t { stop, on_lost };
  static constexpr std::size_t most = 64;
  struct Call {
    std::function<void()> function;
    Kind kind;
  };

  Notifier();
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;
  ~Notifier() { close(); }

  // Calls it soon. Throws std::bad_alloc, or std::system_error if there is no thread and none can be started.
  void post(Call);

  // Waits until everything posted was called. From inside a call: until everything else was.
  void close() noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;  // also the threads': a call may end this object's life
};

}  // namespace v0
}  // namespace redlease
