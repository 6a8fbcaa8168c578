#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "redlease/plan/wait_plan.hpp"

namespace redlease::testing_support {

// One lease and its queue on a server: what the scripts do, without the strings. Times are the server's, in
// microseconds.
class QueueServer {
 public:
  using Token = std::uint64_t;                             // 0: none
  using Inbox = std::uint32_t;                             // 0: none
  static constexpr Token foreign{std::uint64_t{1} << 40};  // tokens from there on are none of ours

  struct Question {
    Token token{};
    Ask how{};
    Millis ttl{}, lifetime{};
    Inbox inbox{};
    std::int64_t arrival{}, not_after{};  // arrival: 0 the first time
  };
  enum class Said : std::uint8_t { too_late, acquired, busy, queued };
  struct Answer {
    Said said{};
    std::uint64_t fence{};
    std::int64_t arrival{}, time{};
    WaitPlan::Place place{};
  };
  // To a waiter. Fence 0: a hint.
  struct Wake {
    Inbox inbox{};
    Token token{};
    std::uint64_t fence{};
    std::int64_t time{};
  };
  // What became of a waiter, or of one that had not waited yet (arrival: now).
  enum class Fate : std::uint8_t { placed, granted, passed_by_as_stale, passed_by_as_deaf };
  struct Turn {
    Fate fate{};
    Token token{};
    std::int64_t arrival{};
    bool kept{false}, announced{false};  // how it was granted; neither: by its own question
  };

  Answer acquire(const Question&, std::int64_t now);
  // Also leaves the queue. Whether it was held.
  bool release(Token, std::int64_t now);
  bool renew(Token, Millis ttl, std::int64_t now);
  // SET NX PX.
  bool set(Token, Millis ttl, std::int64_t now);

  void subscribe(Inbox inbox) { heard_.push_back(inbox); }
  void unsubscribe(Inbox inbox) noexcept { std::erase(heard_, inbox); }
  bool hears(Inbox inbox) const noexcept;
  void lose_queue() noexcept;
  void restart(bool empty) noexcept;

  Token holder(std::int64_t now) const noexcept { return now < expiry_ ? value_ : 0; }
  // Whether a turn could still come to it.
  bool may_serve(Token, std::int64_t now) const noexcept;

  bool no_publish{false}, no_subscribe{false}, no_count{false};
  bool uncounted_is_heard{true};  // what a waiter is told where nobody can count
  std::vector<Wake> wakes;        // for the world to take and deliver
  std::vector<Turn> turns;        // and to check

 private:
  struct Entry {
    Token token{};
    Millis ttl{}, lifetime{};
    Inbox inbox{};
    std::int64_t arrival{};
  };
  struct Stamp {
    Token token{};
    std::int64_t alive_until{};
  };
  // Whose turn it is now: `stop_at`, whom it was granted to, or nobody; none: too many dead ones.
  std::optional<Token> hand_over(Token stop_at, Token leaving, std::int64_t now);
  bool stale(const Entry&, std::int64_t now) const noexcept;
  void grant(Token, Millis ttl, std::int64_t now, std::int64_t arrival);
  void drop(Token) noexcept;
  std::size_t place(const Question&, std::int64_t now);

  Token value_{0};
  std::int64_t expiry_{0};
  std::uint64_t fence_{0};
  std::vector<Entry> queue_;  // by arrival
  std::vector<Stamp> seen_;
  std::vector<Inbox> heard_;
};

}  // namespace redlease::testing_support
