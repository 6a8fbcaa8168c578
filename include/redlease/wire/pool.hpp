#pragma once
#include <cstddef>
#include <memory>
#include <utility>

#include "redlease/clock.hpp"
#include "redlease/error.hpp"
#include "redlease/export.hpp"
#include "redlease/wire/connection.hpp"
#include "redlease/wire/endpoint.hpp"

namespace redlease {
inline namespace v0 {

class Observer;

/// Connections to one server, made when needed and used again. Thread-safe; at most `bound` are lent at once, a further
/// taker waits within its limits.
class REDLEASE_EXPORT Pool {
 public:
  /// How many connections with replies owed are kept open so that the server carries out what they were sent.
  static constexpr std::size_t max_parked = 64;

  Pool(Endpoint, std::size_t bound, std::shared_ptr<Observer>);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// A connection on loan: goes back at the end of the scope, or is closed if it broke. Must not outlive the Pool.
  class Lent {
   public:
    Lent(Pool& pool, std::unique_ptr<Connection> connection, bool used) noexcept
        : pool_(&pool), connection_(std::move(connection)), used_(used) {}
    Lent(Lent&& other) noexcept = default;
    Lent& operator=(Lent&&) = delete;
    ~Lent() {
      if (connection_) pool_->give_back(std::move(connection_));
    }
    Connection& operator*() const noexcept { return *connection_; }
    Connection* operator->() const noexcept { return connection_.get(); }
    /// Has served before: a failure may be no more than the server's having closed it meanwhile.
    bool used() const noexcept { return used_; }
    /// Takes it out of the pool, whose bound no longer counts it.
    std::unique_ptr<Connection> keep() noexcept {
      pool_->forget_one();
      return std::move(connection_);
    }

   private:
    Pool* pool_;
    std::unique_ptr<Connection> connection_;
    bool used_;
  };

  /// An idle connection that the server has not closed, else a new one, else what is given back first. Errors: those of
  /// Connection::open; too_many_connections at the deadline; cancelled.
  Result<Lent> take(const Limits&);

  /// Keeps a connection open until the replies it owes have come, so that what was sent on it is carried out. When
  /// there are too many, the oldest is closed.
  void park(std::unique_ptr<Connection>) noexcept;

  const Endpoint& endpoint() const noexcept { return endpoint_; }

 private:
  void give_back(std::unique_ptr<Connection>) noexcept;
  void forget_one() noexcept;
  void reap() noexcept;

  const Endpoint endpoint_;
  const std::size_t bound_;
  const std::shared_ptr<Observer> observer_;
  struct Shelves;  // the mutex and what it guards
  const std::unique_ptr<Shelves> shelves_;
};

}  // namespace v0
}  // namespace redlease
