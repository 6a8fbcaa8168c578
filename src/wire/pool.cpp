#include "redlease/wire/pool.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "concat.hpp"
#include "mutex.hpp"
#include "nap.hpp"
#include "wire/open_connection.hpp"

namespace redlease {
inline namespace v0 {

struct Pool::Shelves {
  Mutex mutex;
  std::condition_variable_any given_back;
  std::vector<std::unique_ptr<Connection>> idle REDLEASE_GUARDED_BY(mutex);
  std::size_t counted REDLEASE_GUARDED_BY(mutex){0};  // idle and lent
  std::size_t takers REDLEASE_GUARDED_BY(mutex){0};   // waiting

  Mutex parked_mutex;  // apart, since it is held while parked connections are read
  std::deque<std::unique_ptr<Connection>> parked REDLEASE_GUARDED_BY(parked_mutex);
  std::atomic<bool> any_parked{false};
};

Pool::Pool(Endpoint endpoint, std::size_t bound, std::shared_ptr<Observer> observer)
    : endpoint_(std::move(endpoint)),
      bound_(bound),
      observer_(std::move(observer)),
      shelves_(std::make_unique<Shelves>()) {
  const MutexLock lock(shelves_->mutex);
  shelves_->idle.reserve(bound_);  // so that giving back never allocates
}

Pool::~Pool() = default;

Result<Pool::Lent> Pool::take(const Limits& limits) {
  reap();
  Shelves& s = *shelves_;
  for (;;) {
    std::unique_ptr<Connection> found;
    {
      const MutexLock lock(s.mutex);
      while (s.idle.empty() && s.counted >= bound_) {
        const Deadline now = LeaseClock::now();
        if (limits.stop.stop_requested()) {
          return Error{Errc::cancelled, concat({"a stop was requested while waiting for a free connection to ",
                                                endpoint_.display, "; nothing was sent"})};
        }
        if (now >= limits.deadline) {
          return Error{
              Errc::too_many_connections,
              concat({"all ", std::to_string(bound_), " connections to ", endpoint_.display,
                      " were in use until the limit; nothing was sent. Raise ClientOptions::max_connections"})};
        }
        ++s.takers;
        s.given_back.wait_for(s.mutex, limits.stop, slice(limits.deadline, now),
                              [&]() REDLEASE_REQUIRES(s.mutex) { return !s.idle.empty() || s.counted < bound_; });
        --s.takers;
      }
      if (s.idle.empty()) {
        ++s.counted;
      } else {
        found = std::move(s.idle.back());
        s.idle.pop_back();
      }
    }
    if (found) {
      if (found->quiet()) return Lent(*this, std::move(found), true);
      forget_one();
      continue;
    }
    std::optional<Error> error;
    try {
      auto opened = open_connection(endpoint_, observer_.get(), limits);
      if (opened.has_value()) return Lent(*this, std::move(opened).value(), false);
      error = opened.error();
    } catch (...) {
      forget_one();
      throw;
    }
    forget_one();
    return *std::move(error);
  }
}

// Closes those parked connections that have answered.
void Pool::reap() noexcept {
  Shelves& s = *shelves_;
  if (!s.any_parked) return;
  const MutexLock lock(s.parked_mutex);
  std::erase_if(s.parked, [](const auto& parked) { return parked->settled(); });
  s.any_parked = !s.parked.empty();
}

void Pool::give_back(std::unique_ptr<Connection> connection) noexcept {
  if (connection->broken()) {
    forget_one();
    return;
  }
  bool wanted = false;
  {
    const MutexLock lock(shelves_->mutex);
    shelves_->idle.push_back(std::move(connection));
    wanted = shelves_->takers > 0;
  }
  if (wanted) shelves_->given_back.notify_one();
}

void Pool::forget_one() noexcept {
  {
    const MutexLock lock(shelves_->mutex);
    --shelves_->counted;
  }
  shelves_->given_back.notify_one();
}

void Pool::park(std::unique_ptr<Connection> connection) noexcept {
  if (!connection || connection->dead()) return;
  reap();
  std::unique_ptr<Connection> oldest;  // closed outside the lock
  Shelves& s = *shelves_;
  const MutexLock lock(s.parked_mutex);
  try {
    s.parked.push_back(std::move(connection));
  } catch (...) {
    return;
  }
  s.any_parked = true;
  if (s.parked.size() > max_parked) {
    oldest = std::move(s.parked.front());
    s.parked.pop_front();
  }
}

}  // namespace v0
}  // namespace redlease
