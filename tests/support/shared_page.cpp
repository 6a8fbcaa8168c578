#include "support/shared_page.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <new>
#include <stdexcept>

#include "support/sockets.hpp"

namespace redlease {
inline namespace v0 {

// A robust mutex is only ever tried: the kernel frees it when its owner dies, at once and whoever waits for the child.
struct SharedPage::Content {
  pthread_mutex_t inside{};
  std::atomic<pid_t> owner{0};
  std::atomic<std::uint64_t> entries{0}, violations{0}, died_inside{0};
  std::array<std::atomic<std::int64_t>, counters> counts{};
};

SharedPage::SharedPage() {
  static_assert(std::atomic<std::int64_t>::is_always_lock_free, "a lock would not be shared with other processes");
  void* memory = ::mmap(nullptr, sizeof(Content), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw_errno("mmap");
  content_ = new (memory) Content;
  pthread_mutexattr_t attributes;
  ::pthread_mutexattr_init(&attributes);
  ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  ::pthread_mutex_init(&content_->inside, &attributes);
  ::pthread_mutexattr_destroy(&attributes);
}

SharedPage::~SharedPage() { ::munmap(content_, sizeof(Content)); }

bool SharedPage::enter() {
  ++content_->entries;
  const int result = ::pthread_mutex_trylock(&content_->inside);
  if (result == EOWNERDEAD) {
    ::pthread_mutex_consistent(&content_->inside);
    ++content_->died_inside;
  } else if (result == EBUSY) {
    ++content_->violations;
    return false;
  } else if (result != 0) {
    throw std::runtime_error("pthread_mutex_trylock: error " + std::to_string(result));
  }
  content_->owner = ::gettid();
  return true;
}

void SharedPage::leave() {
  if (content_->owner != ::gettid()) return;  // entered as a violation
  content_->owner = 0;
  ::pthread_mutex_unlock(&content_->inside);
}

std::uint64_t SharedPage::entries() const { return content_->entries; }
std::uint64_t SharedPage::violations() const { return content_->violations; }
std::uint64_t SharedPage::died_inside() const { return content_->died_inside; }

std::atomic<std::int64_t>& SharedPage::counter(std::size_t index) { return content_->counts.at(index); }

}  // namespace v0
}  // namespace redlease
