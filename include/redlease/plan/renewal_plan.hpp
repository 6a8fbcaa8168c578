#pragma once
#include <cstdint>
#include <optional>

#include "redlease/clock.hpp"
#include "redlease/export.hpp"
#include "redlease/types.hpp"

namespace redlease {
inline namespace v0 {

/// How one lease is to be kept.
struct KeepTerms {
  Millis ttl{};                   ///< asked for with every renewal
  LeaseClock::duration margin{};  ///< how much less than ttl the holder counts
  Millis op_timeout{};            ///< how long one renewal is waited for
  Millis stop_before{0};          ///< how long before the deadline the work is asked to stop
  Deadline cap{Deadline::max()};  ///< no deadline lies later: max_hold
  bool renew{true};               ///< false: only watch the deadline
};

/// When to renew one lease, when to ask its work to stop, and when it is lost: pure, no I/O, no threads, no clock, the
/// randomness from its seed.
///
/// Usage: next() says what is to be done and when; do it, and tell by the function of the same name that it was done.
/// What answers is told by a saw_ function. The rules:
///
/// - The first renewal comes a third of the ttl after what the last one counted from, give or take 10 %, so that fleets
///   do not beat together; sooner where margin and stop_before leave the work less than 4/9 of the ttl.
/// - A renewal that failed or was not answered within op_timeout is tried again soon, then less soon, always before the
///   deadline. It never moves the deadline.
/// - An answer counts from before its request left, and only if it comes before the deadline and no answer to a later
///   request came before it. It counts also when it was given up.
/// - "Not yours" is loss at once; so is the deadline, without anybody's answer. A lost or ended lease stays so.
/// - No deadline lies behind the cap; when it cannot be moved any more, nothing is renewed.
class REDLEASE_EXPORT RenewalPlan {
 public:
  enum class Step : std::uint8_t {
    renew,        ///< send a renewal, then sent()
    give_up,      ///< the renewal in flight was not answered in time: gave_up()
    ask_to_stop,  ///< ask the work to stop, then asked(); the lease is still held and still renewed
    lose,         ///< the deadline has passed: lost()
    nothing,      ///< it is over
  };
  struct Next {
    Step step{};
    Deadline at{};  ///< a time before now means now
  };

  /// A lease that is held until `deadline`.
  RenewalPlan(const KeepTerms&, Deadline deadline, std::uint64_t seed) noexcept;

  Next next() const noexcept;
  /// Of that, what it will be if no renewal succeeds: ask_to_stop, lose or nothing.
  Next signal() const noexcept;
  Deadline deadline() const noexcept { return deadline_; }
  Deadline cap() const noexcept { return cap_; }
  Millis ttl() const noexcept { return Millis(ttl_); }
  Millis op_timeout() const noexcept { return Millis(op_timeout_); }
  LeaseClock::duration margin() const noexcept { return Millis(ttl_) - term_; }
  /// Set once it is lost.
  std::optional<LossCause> loss() const noexcept { return loss_; }
  /// How much earlier than due it does no harm to renew, where others are renewed anyway.
  LeaseClock::duration early() const noexcept { return Millis(ttl_) / 60; }

  /// A renewal leaves now. Answers name it by the number returned.
  std::uint32_t sent(Deadline now) noexcept;
  void gave_up(Deadline now) noexcept;
  void asked() noexcept { asked_ = true; }
  void lost() noexcept;
  /// It was released, or is no longer to be kept.
  void end() noexcept { ended_ = true; }

  /// True if the deadline was moved.
  bool saw_renewed(std::uint32_t number, Deadline counted_from, Deadline now) noexcept;
  /// Unknown or unavailable: try again. True if that is news.
  bool saw_failed(std::uint32_t number, Deadline now) noexcept;
  /// It was not carried out, and nothing speaks against sending it again at once.
  void saw_unsent(std::uint32_t number, Deadline now) noexcept;
  /// The server has it no longer, or another's. True if that is news.
  bool saw_not_ours(std::uint32_t number, LossCause, Deadline now) noexcept;

 private:
  bool in_flight() const noexcept { return limit_ != Deadline::max(); }
  void schedule(Deadline counted_from) noexcept;
  void renew_at(Deadline) noexcept;
  LeaseClock::duration jittered(LeaseClock::duration) noexcept;

  Deadline deadline_, cap_;
  Deadline due_{Deadline::max()};    // the next renewal; max: none
  Deadline limit_{Deadline::max()};  // of the renewal in flight; max: none is
  LeaseClock::duration term_;        // ttl less margin
  std::int32_t ttl_, op_timeout_, stop_before_;
  std::uint32_t number_{0}, answered_{0};  // of the latest renewal sent, of the latest answered
  std::uint32_t random_;
  std::optional<LossCause> loss_{};
  std::uint8_t failures_{0};
  bool renew_, asked_{false}, ended_{false};
};

}  // namespace v0
}  // namespace redlease
