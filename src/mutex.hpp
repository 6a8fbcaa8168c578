#pragma once
// A std::mutex that clang's -Wthread-safety understands.
#include <mutex>

#if defined(__clang__)
#define REDLEASE_TSA(x) __attribute__((x))
#else
#define REDLEASE_TSA(x)
#endif
#define REDLEASE_GUARDED_BY(x) REDLEASE_TSA(guarded_by(x))
#define REDLEASE_REQUIRES(x) REDLEASE_TSA(requires_capability(x))

namespace redlease {
inline namespace v0 {

class REDLEASE_TSA(capability("mutex")) Mutex {
 public:
  void lock() REDLEASE_TSA(acquire_capability()) { mutex_.lock(); }
  void unlock() REDLEASE_TSA(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class REDLEASE_TSA(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) REDLEASE_TSA(acquire_capability(mutex)) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() REDLEASE_TSA(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace v0
}  // namespace redlease
