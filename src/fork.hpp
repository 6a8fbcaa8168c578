#pragma once
// What fork() does to us, seen before any lock is taken.
#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

namespace redlease {
inline namespace v0 {

// Grows by one in the child of every fork. Cheap: one load.
std::uint64_t fork_generation() noexcept;

// A socket of ours. Held by the parent; a forked child finds it closed already: the child's end of fork() closes every
// one that is registered, so that no child keeps a connection of its parent alive. Shut down before it is closed, since
// a child made by other means (vfork, clone) may still hold a copy.
class OwnedFd {
 public:
  OwnedFd() noexcept = default;
  explicit OwnedFd(int fd) noexcept;
  OwnedFd(OwnedFd&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    std::swap(slot_, other.slot_);
    return *this;
  }
  ~OwnedFd();
  int get() const noexcept;  // -1: none, or closed by fork
  struct Slot;

 private:
  Slot* slot_{nullptr};
};

// A T for each process: made on first use, made anew in a forked child, where the parent's is leaked on purpose (its
// mutexes may have been locked, its threads do not exist).
template <class T>
class PerProcess {
 public:
  explicit PerProcess(std::function<T*()> make) : make_(std::move(make)) {}
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;
  ~PerProcess() {
    Made* made = made_.load(std::memory_order_acquire);
    if (made != nullptr && made->generation == fork_generation()) {
      delete made->value;
      delete made;
    }
  }
  T& get() {
    const std::uint64_t now = fork_generation();
    Made* made = made_.load(std::memory_order_acquire);
    if (made != nullptr && made->generation == now) return *made->value;
    Made* fresh = new Made{now, make_()};
    if (made_.compare_exchange_strong(made, fresh, std::memory_order_acq_rel)) return *fresh->value;
    delete fresh->value;
    delete fresh;
    return *made->value;
  }

 private:
  struct Made {
    std::uint64_t generation;
    T* value;
  };
  std::function<T*()> make_;
  std::atomic<Made*> made_{nullptr};
};

}  // namespace v0
}  // namespace redlease
