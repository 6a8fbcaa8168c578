#pragma once
// Where waiters hear that the lease is theirs.
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "bell.hpp"
#include "redlease/clock.hpp"
#include "redlease/store/seat.hpp"
#include "redlease/wire/connection.hpp"
#include "redlease/wire/endpoint.hpp"

namespace redlease {
inline namespace v0 {

class Observer;

// What one waiter has of an inbox. Messages begin with the token that they are for.
class Inbox {
 public:
  struct Heard {
    Seat::Silence silence{};
    std::optional<std::string> message{};
  };

  virtual ~Inbox() = default;
  // What comes behind "redlease:inbox:" in the name of its channel. Stays the same.
  virtual const std::string& name() const noexcept = 0;
  // Anew, if it is connected. If not `yes`, error() says why.
  virtual Seat::Subscribed connect(const Limits&) = 0;
  virtual const Error& error() const noexcept = 0;
  // The server has not closed it, and nothing is in it.
  virtual bool quiet() noexcept = 0;
  // The next message for this token.
  virtual Heard listen(const std::string& token, const Limits&) = 0;
};

// A subscribed connection. Used by one thread at a time.
class Subscription {
 public:
  Subscription(const Endpoint&, std::shared_ptr<Observer>);

  const std::string& name() const noexcept { return name_; }
  Seat::Subscribed connect(const Limits&);
  bool quiet() noexcept { return connection_ && connection_->quiet(); }
  void close() noexcept { connection_.reset(); }
  const Error& error() const noexcept { return error_; }

  // The next message for whomever; valid until the next call. Otherwise `silence` says why there is none.
  const std::string* next(const Limits&, Seat::Silence& silence);

 private:
  const Endpoint& endpoint_;
  const std::shared_ptr<Observer> observer_;
  const std::string name_;
  std::unique_ptr<Connection> connection_;
  std::optional<Bell> bell_;  // made when somebody may be stopped
  Error error_;
};

}  // namespace v0
}  // namespace redlease
