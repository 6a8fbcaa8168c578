#include "service/notifier.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "thread.hpp"

namespace redlease {
inline namespace v0 {

struct Notifier::State {
  static constexpr std::chrono::seconds linger{1};

  std::mutex mutex;
  std::condition_variable called;
  std::deque<std::function<void()>> stops, losses;
  std::vector<std::jthread> threads, ended;
  std::size_t idle{0}, telling{0};  // telling: on_lost that go on
  bool closing{false};

  std::deque<std::function<void()>>* next() {
    if (!stops.empty()) return &stops;
    return !losses.empty() && telling < most ? &losses : nullptr;
  }

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      if (next() == nullptr && !closing) {
        ++idle;
        called.wait_for(lock, linger, [&] { return closing || next() != nullptr; });
        --idle;
      }
      auto* const calls = next();
      if (calls == nullptr) break;  // what is left is for those that are telling
      const bool tells = calls == &losses;
      if (tells) ++telling;
      std::function<void()> call = std::move(calls->front());
      calls->pop_front();
      lock.unlock();
      call();
      call = nullptr;
      lock.lock();
      if (tells) --telling;
    }
    const auto self = std::find_if(threads.begin(), threads.end(),
                                   [](const auto& t) { return t.get_id() == std::this_thread::get_id(); });
    if (self == threads.end()) return;  // close() has it
    ended.push_back(std::move(*self));
    threads.erase(self);
  }
};

Notifier::Notifier() : state_(std::make_shared<State>()) {}

void Notifier::post(Call call) {
  State& s = *state_;
  const std::scoped_lock lock(s.mutex);
  s.ended.clear();  // they have nothing more to do: joining them does not wait
  auto& calls = call.kind == Kind::stop ? s.stops : s.losses;
  calls.push_back(std::move(call.function));
  if (s.idle > 0) s.called.notify_one();
  const std::size_t ready = s.stops.size() + std::min(s.losses.size(), most - s.telling);
  if (s.idle >= ready || s.threads.size() >= 2 * most) return;
  try {
    s.ended.reserve(s.threads.size() + 1);  // so that a thread's end never fails
    s.threads.reserve(s.threads.size() + 1);
    s.threads.push_back(start_thread("redlease-notify", [state = state_] { state->work(); }));
  } catch (...) {
    if (!s.threads.empty()) return;  // it has to wait for those that there are
    calls.pop_back();
    throw;
  }
}

void Notifier::close() noexcept {
  State& s = *state_;
  std::vector<std::jthread> threads, ended;  // joined at the end of this scope
  {
    const std::scoped_lock lock(s.mutex);
    s.closing = true;
    threads.swap(s.threads);
    ended.swap(s.ended);
  }
  s.called.notify_all();
  for (std::jthread& thread : threads) {
    if (thread.get_id() == std::this_thread::get_id()) thread.detach();
  }
}

}  // namespace v0
}  // namespace redlease
