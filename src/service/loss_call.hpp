#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "redlease/types.hpp"

namespace redlease {
inline namespace v0 {

// One call of a program's on_lost, which ends with the one that it tells of: withdrawn before it begins, waited for
// when it is going on, except from inside. Thread-safe.
class LossCall {
 public:
  explicit LossCall(std::function<void(LossCause)> on_lost) : on_lost_(std::move(on_lost)) {}

  void run(LossCause cause) noexcept {
    std::unique_lock lock(mutex_);
    if (over_) return;
    runner_ = std::this_thread::get_id();
    lock.unlock();
    try {
      on_lost_(cause);
    } catch (...) {
      // Nobody is there to be told.
    }
    lock.lock();
    over_ = true;
    ended_.notify_all();
  }

  void withdraw() noexcept {
    std::unique_lock lock(mutex_);
    if (runner_ == std::thread::id{}) over_ = true;
    if (runner_ == std::this_thread::get_id()) return;
    ended_.wait(lock, [&] { return over_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  const std::function<void(LossCause)> on_lost_;
  std::thread::id runner_;
  bool over_{false};
};

}  // namespace v0
}  // namespace redlease
