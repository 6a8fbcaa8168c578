#include "store/redis_doubt.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "concat.hpp"
#include "store/release_call.hpp"
#include "store/scripts.hpp"

namespace redlease {
inline namespace v0 {

RedisDoubt::RedisDoubt(const RedisCalls& calls, std::unique_ptr<Connection> connection, const AcquireRequest& request,
                       Deadline spent_by, std::string member)
    : calls_(calls),
      connection_(std::move(connection)),
      key_(request.key),
      token_(request.token),
      member_(std::move(member)),
      spent_by_(spent_by),
      op_timeout_(request.op_timeout) {}

RedisDoubt::~RedisDoubt() {
  if (settled_) return;
  try {
    if (can_retry() && connection_->send(withdrawal(), {deadline_in(op_timeout_), {}})) {
      calls_.pool().park(std::move(connection_));
    }
  } catch (...) {
    // Out of memory: the ttl will have to do.
  }
}

const std::string& RedisDoubt::withdrawal() {
  std::string& frame = connection_->frame();
  append_eval(frame, ReleaseCall(key_, token_, member_));
  return frame;
}

Acquisition RedisDoubt::retry(const AcquireRequest& request, const Limits& limits) {
  // Whoever waited does so no longer.
  const RedisCalls::Waiter leaving{.how = "l", .member = member_, .arrival = "0", .lifetime = "0", .inbox = "-"};
  RedisCalls::Attempt attempt = calls_.attempt(*connection_, request, limits, member_.empty() ? nullptr : &leaving);
  settled_ = true;
  if (std::holds_alternative<Granted>(attempt.outcome) || std::holds_alternative<Busy>(attempt.outcome)) {
    return std::move(attempt.outcome);
  }
  // Whatever became of this one, the first may have been executed.
  Error error = std::holds_alternative<Error>(attempt.outcome) ? std::get<Error>(std::move(attempt.outcome))
                                                               : std::get<Doubtful>(std::move(attempt.outcome)).error;
  error = about(
      "acquire", key_,
      {Errc::unknown_outcome, concat({"the first request may have been executed; asking again: ", error.detail})});
  return Doubtful{std::make_unique<RedisDoubt>(calls_, std::move(connection_), request,
                                               std::max(spent_by_, attempt.spent_by), std::move(member_)),
                  std::move(error)};
}

Released RedisDoubt::withdraw(const Limits& limits) {
  if (can_retry()) {
    Released released = withdraw_behind(limits);
    if (connection_ == nullptr || !connection_->dead()) return released;
  }
  return withdraw_elsewhere(limits);
}

Released RedisDoubt::withdraw_behind(const Limits& limits) {
  ScriptAnswer answer;
  answer.delivery = connection_->call(withdrawal(), limits);
  if (answer.delivery == Delivery::answered) {
    judge(answer, *connection_);
  } else {
    answer.error = connection_->error();
  }
  if (answer.reply != nullptr && !is_release_answer(*answer.reply)) not_understood(answer, *connection_);
  if (answer.reply != nullptr) {
    settled_ = true;
    if (answer.reply->integer >= 1) return {ReleaseOutcome::released, {}, {}};
    return {ReleaseOutcome::not_held, cause_of(answer.reply->integer), {}};
  }
  if (connection_->broken() && !connection_->dead()) {
    settled_ = true;  // it is on its way
    calls_.pool().park(std::move(connection_));
  }
  if (answer.error.code == Errc::not_a_lease) {
    settled_ = true;
    return {ReleaseOutcome::not_held, LossCause::taken, {}};
  }
  const bool doubt = answer.delivery == Delivery::in_doubt;
  return {
      doubt ? ReleaseOutcome::unknown : ReleaseOutcome::unavailable, {}, error_of("withdraw", key_, std::move(answer))};
}

Released RedisDoubt::withdraw_elsewhere(const Limits& limits) {
  for (;;) {
    const Deadline sent = LeaseClock::now();
    Released released = calls_.release(key_, token_, limits, member_);
    if (released.outcome == ReleaseOutcome::released) {
      settled_ = true;
      return released;
    }
    if (released.outcome != ReleaseOutcome::not_held) return released;
    // On another connection the withdrawal may have overtaken the acquire: only one sent after the server would refuse
    // that is the last word.
    if (sent >= spent_by_) {
      settled_ = true;
      return released;
    }
    if (spent_by_ > limits.deadline || spent_by_ == Deadline::max()) {
      return {
          ReleaseOutcome::unknown,
          {},
          about("withdraw", key_,
                {Errc::unknown_outcome,
                 concat({"nothing of it was found at ", calls_.pool().endpoint().display,
                         ", but its connection broke and the server may still carry it out for a moment. Withdraw it "
                         "with a later deadline"})})};
    }
    while (LeaseClock::now() < spent_by_ && !limits.stop.stop_requested()) {
      std::this_thread::sleep_for(std::min<LeaseClock::duration>(spent_by_ - LeaseClock::now(), Millis(10)));
    }
  }
}

void RedisDoubt::abandon() noexcept {
  settled_ = true;
  // The connection stays open until the server has answered, since some servers drop what a closed connection still
  // waits for.
  calls_.pool().park(std::move(connection_));
}

}  // namespace v0
}  // namespace redlease
