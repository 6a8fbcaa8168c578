#pragma once
#include <condition_variable>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>

#include "mutex.hpp"
#include "store/inbox.hpp"

namespace redlease {
inline namespace v0 {

// One subscription for many waiters, read by a thread that hands each its own. The thread runs while there are waiters.
class SharedInbox {
 public:
  // A waiter's end of it.
  class Ticket final : public Inbox {
   public:
    Ticket(std::shared_ptr<SharedInbox> inbox, std::string token)
        : inbox_(std::move(inbox)), token_(std::move(token)) {}
    ~Ticket() override;
    const std::string& name() const noexcept override { return inbox_->subscription_.name(); }
    Seat::Subscribed connect(const Limits&) override;
    bool quiet() noexcept override { return false; }  // its place is given up, not lent again
    Heard listen(const std::string& token, const Limits&) override;
    const Error& error() const noexcept override { return error_; }
    const std::shared_ptr<SharedInbox>& inbox() const noexcept { return inbox_; }

   private:
    friend class SharedInbox;
    const std::shared_ptr<SharedInbox> inbox_;
    const std::string token_;
    Error error_;
    // Guarded by the inbox's mutex.
    std::optional<std::string> message_;
    std::size_t seen_losses_{0};
    std::condition_variable_any woken_;
  };

  // A ticket that hears already; null if the inbox is not connected.
  static std::unique_ptr<Ticket> join(const std::shared_ptr<SharedInbox>&, const std::string& token);

  SharedInbox(const Endpoint&, std::shared_ptr<Observer>);
  SharedInbox(const SharedInbox&) = delete;
  SharedInbox& operator=(const SharedInbox&) = delete;
  ~SharedInbox() = default;

 private:
  enum class State : std::uint8_t { down, up, refused };

  void run(const std::stop_token&) noexcept;
  bool over() REDLEASE_REQUIRES(mutex_);
  bool connect(const std::stop_token&);
  void deliver(const std::string& message);

  Subscription subscription_;  // the thread's
  Mutex mutex_;
  std::condition_variable_any changed_;
  State state_ REDLEASE_GUARDED_BY(mutex_){State::down};
  Error error_ REDLEASE_GUARDED_BY(mutex_);  // of the last attempt
  bool running_ REDLEASE_GUARDED_BY(mutex_){false};
  std::size_t attempts_ REDLEASE_GUARDED_BY(mutex_){0};  // to connect that have ended
  std::size_t losses_ REDLEASE_GUARDED_BY(mutex_){0};
  std::unordered_map<std::string_view, Ticket*> waiting_ REDLEASE_GUARDED_BY(mutex_);  // by their tokens
  std::jthread thread_;  // the last member: it uses the others
};

}  // namespace v0
}  // namespace redlease
