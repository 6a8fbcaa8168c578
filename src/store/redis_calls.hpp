#pragma once
// The calls of a RedisStore, over a pool.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "redlease/plan/wait_plan.hpp"
#include "redlease/store/lease_store.hpp"
#include "redlease/wire/pool.hpp"
#include "store/script_call.hpp"

namespace redlease {
inline namespace v0 {

// Beyond the limit of its call, how long an acquire may still be executed: clocks may run apart a little.
inline constexpr Millis not_after_slack{50};

// Whether a request that may have been executed may be sent again on another connection.
enum class AfterDoubt : std::uint8_t { again, tell };

class RedisCalls {
 public:
  RedisCalls(Pool& pool, const Clock& clock) noexcept : pool_(pool), clock_(clock) {}

  // Runs a script on a connection of the pool. One that proves stale is replaced, within the limits. `on_reply` is
  // called with the script's answer and with whether an earlier sending of it may have been executed too; false: that
  // is no answer of this script. Without an answer the delivery says what is proved; a connection that may still answer
  // is parked.
  template <class OnReply>
  ScriptAnswer run(const ScriptCall& call, const Limits& limits, AfterDoubt after_doubt, OnReply&& on_reply) const {
    ScriptAnswer answer;
    bool doubted = false;
    for (int tries = 0; tries < 3; ++tries) {
      auto lent = pool_.take(limits);
      if (!lent.has_value()) {
        answer = {};
        answer.error = lent.error();
        break;
      }
      Pool::Lent& connection = lent.value();
      answer = redlease::run(*connection, call, limits, clock_);
      if (answer.reply != nullptr && !on_reply(*answer.reply, doubted)) not_understood(answer, *connection);
      if (answer.reply != nullptr) return answer;
      doubted = doubted || answer.delivery == Delivery::in_doubt;
      if (connection->broken() && !connection->dead()) pool_.park(connection.keep());
      const bool worth_another = answer.error.code == Errc::connection_closed && LeaseClock::now() < limits.deadline;
      if (!worth_another || (doubted && after_doubt == AfterDoubt::tell)) break;
    }
    if (doubted && answer.delivery == Delivery::not_executed) {
      answer.error.detail =
          "a first sending left and its connection broke, so it may have been executed; a second was not: " +
          answer.error.detail;
    }
    answer.delivery = doubted ? Delivery::in_doubt : Delivery::not_executed;
    return answer;
  }

  // One try for a lease.
  Acquisition acquire(const AcquireRequest&, const Limits&) const;

  // `member`: of a waiter, its entry in the queue, which it leaves. `ping`: see ScriptCall.
  Released release(std::string_view key, std::string_view token, const Limits&, std::string_view member = {},
                   bool ping = false) const;

  Pool& pool() const noexcept { return pool_; }

  // What a waiter adds to an acquire: see Scripts::acquire.
  struct Waiter {
    std::string_view how, member, arrival, lifetime, inbox;
  };
  struct Attempt {
    Acquisition outcome;  // Doubtful without a doubt: the caller makes it, over the connection
    Deadline spent_by{};  // when the server will surely refuse the request if it has not executed it by then
    // Of a waiter that is busy: its place, and since when it has waited by the server's clock.
    std::optional<WaitPlan::Place> place{};
    std::int64_t arrival{0};
    bool hearing_unknown{false};  // the server does not tell whether it can reach the waiter's inbox
    bool no_queue{false};         // this user may not use the queue, or another type is at its key
    // Of Doubtful over the pool: the one that owes the answer, or is dead.
    std::unique_ptr<Connection> connection{};
  };
  // One acquire on this connection, behind whatever it owes.
  Attempt attempt(Connection&, const AcquireRequest&, const Limits&, const Waiter* = nullptr) const;
  // The same over the pool; again on a fresh connection where one proved stale and nothing was executed.
  Attempt attempt(const AcquireRequest&, const Limits&, const Waiter* = nullptr) const;

 private:
  Pool& pool_;
  const Clock& clock_;
};

// 2, 1, 0 or -1, as renewals and releases answer.
bool is_release_answer(const Reply&) noexcept;

// "acquire "invoices": …"
Error about(std::string_view verb, std::string_view key, Error);

// The same of a call without an answer, whose code becomes unknown_outcome if it is in doubt.
Error error_of(std::string_view verb, std::string_view key, ScriptAnswer);

}  // namespace v0
}  // namespace redlease
