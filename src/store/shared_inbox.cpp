#include "store/shared_inbox.hpp"

#include <chrono>
#include <system_error>
#include <utility>

#include "concat.hpp"
#include "nap.hpp"
#include "thread.hpp"

namespace redlease {
inline namespace v0 {

namespace {

constexpr Millis patience{1'000};  // with one attempt to connect
constexpr Millis linger{500};      // without a waiter
constexpr Millis after_refusal{5'000};

}  // namespace

SharedInbox::SharedInbox(const Endpoint& endpoint, std::shared_ptr<Observer> observer)
    : subscription_(endpoint, std::move(observer)) {}

std::unique_ptr<SharedInbox::Ticket> SharedInbox::join(const std::shared_ptr<SharedInbox>& inbox,
                                                       const std::string& token) {
  auto ticket = std::make_unique<Ticket>(inbox, token);
  const MutexLock lock(inbox->mutex_);
  if (inbox->state_ != State::up) return nullptr;
  inbox->waiting_.emplace(ticket->token_, ticket.get());
  ticket->seen_losses_ = inbox->losses_;
  return ticket;
}

SharedInbox::Ticket::~Ticket() {
  const MutexLock lock(inbox_->mutex_);
  inbox_->waiting_.erase(token_);
}

Seat::Subscribed SharedInbox::Ticket::connect(const Limits& limits) {
  SharedInbox& all = *inbox_;
  const MutexLock lock(all.mutex_);
  all.waiting_.emplace(token_, this);
  message_.reset();
  if (!all.running_) {
    all.state_ = State::down;
    try {
      all.thread_ = start_thread("redlease-inbox", [&all](const std::stop_token& stop) { all.run(stop); });
    } catch (const std::system_error& error) {
      error_ = {Errc::connect_failed, concat({"no thread to listen on: ", error.what()})};
      return Seat::Subscribed::no;
    }
    all.running_ = true;
  }
  const std::size_t attempts = all.attempts_;
  while (all.state_ == State::down && all.attempts_ == attempts && !limits.stop.stop_requested() &&
         LeaseClock::now() < limits.deadline) {
    all.changed_.wait_for(all.mutex_, limits.stop, slice(limits.deadline), [&]() REDLEASE_REQUIRES(all.mutex_) {
      return all.state_ != State::down || all.attempts_ != attempts;
    });
  }
  seen_losses_ = all.losses_;
  error_ = all.error_;
  if (all.state_ == State::up) return Seat::Subscribed::yes;
  return all.state_ == State::refused ? Seat::Subscribed::refused : Seat::Subscribed::no;
}

Inbox::Heard SharedInbox::Ticket::listen(const std::string&, const Limits& limits) {
  SharedInbox& all = *inbox_;
  const MutexLock lock(all.mutex_);
  for (;;) {
    if (message_) return {{}, std::exchange(message_, std::nullopt)};
    if (all.losses_ != seen_losses_) return {Seat::Silence::inbox_lost, {}};
    if (limits.stop.stop_requested()) return {Seat::Silence::stopped, {}};
    if (LeaseClock::now() >= limits.deadline) return {Seat::Silence::time_is_up, {}};
    woken_.wait_for(all.mutex_, limits.stop, slice(limits.deadline), [&]() REDLEASE_REQUIRES(all.mutex_) {
      return message_.has_value() || all.losses_ != seen_losses_;
    });
  }
}

void SharedInbox::run(const std::stop_token& stop) noexcept {
  try {
    bool up = false;
    while (!stop.stop_requested()) {
      if (!up) {
        {
          const MutexLock lock(mutex_);
          if (over()) return;
        }
        if (!(up = connect(stop))) continue;
      }
      Seat::Silence silence{};
      if (const std::string* message = subscription_.next({deadline_in(linger), stop}, silence)) {
        deliver(*message);
        continue;
      }
      const MutexLock lock(mutex_);
      if (silence == Seat::Silence::inbox_lost) {
        up = false;
        state_ = State::down;
        ++losses_;
        for (const auto& [token, ticket] : waiting_) ticket->woken_.notify_one();
      } else if (over()) {
        return;
      }
    }
  } catch (...) {
    // Out of memory or descriptors: those who wait ask now and then, and whoever comes next begins anew.
  }
  const MutexLock lock(mutex_);
  running_ = false;
  state_ = State::down;
  ++losses_;
  ++attempts_;
  for (const auto& [token, ticket] : waiting_) ticket->woken_.notify_one();
  changed_.notify_all();
}

// Nobody has waited for a while.
bool SharedInbox::over() {
  if (!waiting_.empty()) return false;
  subscription_.close();
  running_ = false;
  state_ = State::down;
  return true;
}

bool SharedInbox::connect(const std::stop_token& stop) {
  const Seat::Subscribed result = subscription_.connect({deadline_in(patience), stop});
  {
    const MutexLock lock(mutex_);
    ++attempts_;
    error_ = subscription_.error();
    state_ = result == Seat::Subscribed::yes ? State::up : State::down;
    if (result == Seat::Subscribed::refused) state_ = State::refused;
    changed_.notify_all();
    if (state_ == State::up) return true;
  }
  nap({deadline_in(result == Seat::Subscribed::refused ? after_refusal : Millis(50)), stop});
  return false;
}

void SharedInbox::deliver(const std::string& message) {
  const MutexLock lock(mutex_);
  const auto it = waiting_.find(std::string_view(message).substr(0, message.find(' ')));
  if (it == waiting_.end()) return;
  it->second->message_ = message;
  it->second->woken_.notify_one();
}

}  // namespace v0
}  // namespace redlease
