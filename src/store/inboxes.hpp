#pragma once
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "mutex.hpp"
#include "redlease/clock.hpp"
#include "redlease/wire/endpoint.hpp"
#include "store/inbox.hpp"

namespace redlease {
inline namespace v0 {

class Observer;
class SharedInbox;

// The inboxes of one client at one server. Up to a bound each waiter has a connection of its own, which it reads
// itself: a thread in between would cost a switch of threads, most of a hand-over. Those beyond share one. Thread-safe;
// must outlive what it lends.
class Inboxes {
 public:
  static constexpr Millis idle_limit{500};  // then one that nobody uses is closed

  Inboxes(const Endpoint&, std::size_t bound, std::shared_ptr<Observer>);
  Inboxes(const Inboxes&) = delete;
  Inboxes& operator=(const Inboxes&) = delete;
  ~Inboxes();

  // One for this token that is connected already; null if there is none.
  std::unique_ptr<Inbox> at_hand(const std::string& token);
  // One that is to be connected.
  std::unique_ptr<Inbox> fresh(const std::string& token);
  // `clean`: nothing in it can come true any more for whoever had it. If not, its name is never used again.
  void give_back(std::unique_ptr<Inbox>, bool clean) noexcept;

  // Waiters at this server can not be woken, and why: told to the observer once.
  void refused(const Error&) noexcept;

 private:
  struct Idle {
    std::unique_ptr<Inbox> inbox;
    Deadline since;
  };
  void sweep(const std::stop_token&) noexcept;

  const Endpoint& endpoint_;
  const std::size_t bound_;
  const std::shared_ptr<Observer> observer_;
  Mutex mutex_;
  std::condition_variable_any never_;
  std::vector<Idle> idle_ REDLEASE_GUARDED_BY(mutex_);
  std::size_t own_ REDLEASE_GUARDED_BY(mutex_){0};  // idle and lent
  std::shared_ptr<SharedInbox> shared_ REDLEASE_GUARDED_BY(mutex_);
  bool sweeping_ REDLEASE_GUARDED_BY(mutex_){false};
  bool told_ REDLEASE_GUARDED_BY(mutex_){false};
  std::jthread sweeper_;  // the last member: it uses the others
};

}  // namespace v0
}  // namespace redlease
