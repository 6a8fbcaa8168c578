#include "fork.hpp"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <new>

namespace redlease {
inline namespace v0 {

struct OwnedFd::Slot {
  std::atomic<int> fd;
  Slot* next;
};

namespace {

// What a slot holds besides a descriptor. A slot closed by fork still has an owner, so it is not vacant.
constexpr int closed_by_fork = -1;
constexpr int vacant = -2;

// The child's handler may touch nothing but lock-free atomics and close(2).
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<OwnedFd::Slot*>::is_always_lock_free);
std::atomic<std::uint64_t> generation{0};
std::atomic<OwnedFd::Slot*> slots{nullptr};

void in_child() {
  generation.fetch_add(1);
  for (OwnedFd::Slot* slot = slots.load(); slot != nullptr; slot = slot->next) {
    int fd = slot->fd.load();
    if (fd >= 0 && slot->fd.compare_exchange_strong(fd, closed_by_fork)) ::close(fd);
  }
}

// At load, not on first use: a guard against registering twice would be a lock that a fork can catch in the wrong
// state, and the handlers registered first are the first to run in the child.
[[gnu::constructor]] void watch_forks() { ::pthread_atfork(nullptr, nullptr, in_child); }

OwnedFd::Slot* take_slot(int fd) noexcept {
  for (OwnedFd::Slot* slot = slots.load(); slot != nullptr; slot = slot->next) {
    int expected = vacant;
    if (slot->fd.compare_exchange_strong(expected, fd)) return slot;
  }
  auto* slot = new (std::nothrow) OwnedFd::Slot{{fd}, slots.load()};
  if (slot == nullptr) return nullptr;
  while (!slots.compare_exchange_weak(slot->next, slot)) {
  }
  return slot;
}

}  // namespace

std::uint64_t fork_generation() noexcept { return generation.load(); }

OwnedFd::OwnedFd(int fd) noexcept : slot_(fd < 0 ? nullptr : take_slot(fd)) {
  if (fd >= 0 && slot_ == nullptr) {
    ::close(fd);
    errno = ENOMEM;
  }
}

OwnedFd::~OwnedFd() {
  if (slot_ == nullptr) return;
  // Shut down while it is registered, closed after: a fork at any point in between leaves the child either with nothing
  // or with a dead socket, and never closes a number that has been given out anew.
  if (const int fd = slot_->fd.load(); fd >= 0) ::shutdown(fd, SHUT_RDWR);
  if (const int fd = slot_->fd.exchange(vacant); fd >= 0) ::close(fd);
}

int OwnedFd::get() const noexcept { return slot_ == nullptr ? -1 : slot_->fd.load(); }

}  // namespace v0
}  // namespace redlease
