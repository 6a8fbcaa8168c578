#include "support/event_loop.hpp"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <memory>

namespace redlease {
inline namespace v0 {
namespace {

// Held by loops at work, and over a fork: a child inherits the locks of a sanitizer's allocator as they are, and those
// that a loop held would stay locked there for ever.
constinit std::mutex at_work;

[[gnu::constructor]] void hold_over_forks() {
  ::pthread_atfork([] { at_work.lock(); }, [] { at_work.unlock(); }, [] { at_work.unlock(); });
}

}  // namespace

EventLoop::EventLoop() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_) throw_errno("eventfd");
}

void EventLoop::start(std::function<Deadline(std::vector<pollfd>&)> prepare, std::function<void()> handle) {
  prepare_ = std::move(prepare);
  handle_ = std::move(handle);
  thread_ = std::jthread([this](const std::stop_token& stop) { loop(stop); });
}

void EventLoop::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  wake();
  thread_.join();
}

void EventLoop::run(std::function<void()> task) {
  const auto done = std::make_shared<std::packaged_task<void()>>([this, &task] {
    task();
    handle_();
  });
  auto result = done->get_future();
  {
    const std::lock_guard lock(mutex_);
    tasks_.emplace_back([done] { (*done)(); });
  }
  wake();
  result.get();
}

void EventLoop::wake() const {
  const std::uint64_t one = 1;
  // Fails only if as many wake-ups are pending as the counter can hold, and then the thread wakes anyway.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void EventLoop::loop(const std::stop_token& stop) {
  std::unique_lock working(at_work);
  std::vector<pollfd> sockets;
  while (!stop.stop_requested()) {
    sockets.assign(1, {wake_.get(), POLLIN, 0});
    const Deadline until = prepare_(sockets);
    const auto left =
        std::clamp<LeaseClock::duration>(until == Deadline::max() ? std::chrono::hours(1) : until - LeaseClock::now(),
                                         LeaseClock::duration::zero(), std::chrono::hours(1));
    const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
    const timespec wait{seconds.count(), (left - seconds).count()};
    working.unlock();
    ::ppoll(sockets.data(), sockets.size(), &wait, nullptr);
    working.lock();
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t woken = ::read(wake_.get(), &count, sizeof count);
    handle_();
    std::vector<std::function<void()>> tasks;
    {
      const std::lock_guard lock(mutex_);
      tasks.swap(tasks_);
    }
    for (const auto& task : tasks) task();
  }
}

}  // namespace v0
}  // namespace redlease
