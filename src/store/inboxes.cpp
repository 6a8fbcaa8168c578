#include "store/inboxes.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "redlease/observer.hpp"
#include "store/shared_inbox.hpp"
#include "thread.hpp"

namespace redlease {
inline namespace v0 {

namespace {

bool is_for(std::string_view message, std::string_view token) noexcept {
  return message.starts_with(token) && (message.size() == token.size() || message[token.size()] == ' ');
}

class OwnInbox final : public Inbox {
 public:
  OwnInbox(const Endpoint& endpoint, std::shared_ptr<Observer> observer)
      : subscription_(endpoint, std::move(observer)) {}
  const std::string& name() const noexcept override { return subscription_.name(); }
  const Error& error() const noexcept override { return subscription_.error(); }
  Seat::Subscribed connect(const Limits& limits) override { return subscription_.connect(limits); }
  bool quiet() noexcept override { return subscription_.quiet(); }
  Heard listen(const std::string& token, const Limits& limits) override {
    for (;;) {
      Heard heard;
      const std::string* const message = subscription_.next(limits, heard.silence);
      if (message == nullptr) return heard;
      if (!is_for(*message, token)) continue;  // for whoever had this inbox before
      heard.message = *message;
      return heard;
    }
  }

 private:
  Subscription subscription_;
};

}  // namespace

Inboxes::Inboxes(const Endpoint& endpoint, std::size_t bound, std::shared_ptr<Observer> observer)
    : endpoint_(endpoint), bound_(bound), observer_(std::move(observer)) {}

Inboxes::~Inboxes() = default;

std::unique_ptr<Inbox> Inboxes::at_hand(const std::string& token) {
  for (;;) {
    std::unique_ptr<Inbox> found;
    std::shared_ptr<SharedInbox> shared;
    {
      const MutexLock lock(mutex_);
      if (!idle_.empty()) {
        found = std::move(idle_.back().inbox);
        idle_.pop_back();
      } else if (own_ >= bound_) {
        shared = shared_;
      }
    }
    if (!found) return shared ? SharedInbox::join(shared, token) : nullptr;
    if (found->quiet()) return found;
    give_back(std::move(found), false);
  }
}

std::unique_ptr<Inbox> Inboxes::fresh(const std::string& token) {
  std::shared_ptr<SharedInbox> shared;
  {
    const MutexLock lock(mutex_);
    if (own_ < bound_) {
      auto own = std::make_unique<OwnInbox>(endpoint_, observer_);
      idle_.reserve(own_ + 1);  // so that giving back never allocates
      ++own_;
      return own;
    }
    if (!shared_) shared_ = std::make_shared<SharedInbox>(endpoint_, observer_);
    shared = shared_;
  }
  return std::make_unique<SharedInbox::Ticket>(std::move(shared), token);
}

void Inboxes::give_back(std::unique_ptr<Inbox> inbox, bool clean) noexcept {
  std::shared_ptr<SharedInbox> retired;  // both end outside the lock
  const MutexLock lock(mutex_);
  if (const auto* ticket = dynamic_cast<const SharedInbox::Ticket*>(inbox.get())) {
    if (!clean && ticket->inbox() == shared_) retired = std::move(shared_);
    return;
  }
  if (clean && !sweeping_) {
    try {
      sweeper_ = start_thread("redlease-sweep", [this](const std::stop_token& stop) { sweep(stop); });
      sweeping_ = true;
    } catch (...) {
      clean = false;  // nobody would close it
    }
  }
  if (clean) {
    idle_.push_back({std::move(inbox), LeaseClock::now()});
  } else {
    --own_;
  }
}

void Inboxes::sweep(const std::stop_token& stop) noexcept {
  std::unique_ptr<Inbox> old;
  while (!stop.stop_requested()) {
    old.reset();
    const MutexLock lock(mutex_);
    if (idle_.empty()) {
      sweeping_ = false;
      return;
    }
    // The front one is the oldest: the last that was given back is lent first.
    const auto left = deadline_after(idle_.front().since, idle_limit) - LeaseClock::now();
    if (left <= LeaseClock::duration::zero()) {
      old = std::move(idle_.front().inbox);
      idle_.erase(idle_.begin());
      --own_;
    } else {
      never_.wait_for(mutex_, stop, left, [] { return false; });
    }
  }
}

void Inboxes::refused(const Error& error) noexcept {
  {
    const MutexLock lock(mutex_);
    if (std::exchange(told_, true)) return;
  }
  if (observer_) observer_->unheard({.server = endpoint_.display, .error = &error});
}

}  // namespace v0
}  // namespace redlease
