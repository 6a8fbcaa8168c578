#include "redlease/wire/pool.hpp"

#include <algorithm>
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
  std::deque<std::unique_ptr<Connection>> parked REDLEASE_GUARDED_BY(mutex);
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
  Shelves& s = *shelves_;
  for (;;) {
    std::unique_ptr<Connection> found;
    {
      const MutexLock lock(s.mutex);
      std::erase_if(s.parked, [](const auto& parked) { return parked->settled(); });
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
  std::unique_ptr<Connection> oldest;  // closed outside the lock
  const MutexLock lock(shelves_->mutex);
  try {
    shelves_->parked.push_back(std::move(connection));
  } catch (...) {
    return;
  }
  if (shelves_->parked.size() > max_parked) {
    oldest = std::move(shelves_->parked.front());
    shelves_->parked.pop_front();
  }
}

}  // namespace v0
}  // namespace redlease
