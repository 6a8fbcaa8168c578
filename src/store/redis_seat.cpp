#include "store/redis_seat.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "concat.hpp"
#include "nap.hpp"
#include "store/redis_doubt.hpp"
#include "wire/decimal.hpp"

namespace redlease {
inline namespace v0 {

RedisSeat::RedisSeat(const RedisCalls& calls, Inboxes& inboxes, const AcquireRequest& request)
    : calls_(calls), inboxes_(inboxes), request_(request), inbox_(inboxes.at_hand(token_.str())) {
  request_.token = token_.str();
}

RedisSeat::~RedisSeat() {
  // Whatever may still put this waiter into the queue, nobody is told that its turn has come: it is passed over.
  const bool clean = !in_queue_ && LeaseClock::now() >= spent_by();
  if (inbox_) inboxes_.give_back(std::move(inbox_), clean);
  if (owing_) calls_.pool().park(std::move(owing_));
}

Deadline RedisSeat::spent_by() const noexcept { return std::max(owed_until_, lost_until_); }

// Looks first whether it was closed meanwhile: what is written then is lost without a word.
bool RedisSeat::owed() noexcept {
  if (owing_ && (owing_->settled(), owing_->dead())) saw_unanswered(nullptr, owed_until_);
  return owing_ != nullptr;
}

void RedisSeat::saw_unanswered(std::unique_ptr<Connection> connection, Deadline spent_by) noexcept {
  in_doubt_ = true;
  if (connection && !connection->dead()) {
    owing_ = std::move(connection);
    owed_until_ = std::max(owed_until_, spent_by);
    return;
  }
  lost_until_ = std::max({lost_until_, owed_until_, spent_by});
  owed_until_ = Deadline::min();
  owing_.reset();
}

void RedisSeat::write_member(std::string_view lifetime) {
  const std::string_view inbox = inbox_ ? std::string_view(inbox_->name()) : "-";
  const Decimal ttl(request_.ttl.count());
  const Decimal floor(request_.floor ? static_cast<std::int64_t>(*request_.floor) : 0);
  member_.clear();
  for (const std::string_view part : {std::string_view(token_.str()), std::string_view(ttl), lifetime,
                                      std::string_view(floor), inbox, request_.holder}) {
    member_.append(part).append(" ");
  }
  member_.append(request_.label);
}

RedisCalls::Attempt RedisSeat::attempt(Ask how, Millis lifetime_ms, const Limits& limits) {
  const Decimal lifetime(lifetime_ms.count());
  const Decimal arrival(arrival_);
  if (how == Ask::queue || how == Ask::reserve) {
    in_queue_ = true;
    write_member(lifetime);
  }
  const bool hears = how == Ask::queue && inbox_;
  const RedisCalls::Waiter waiter{.how = how == Ask::last ? "l" : "q",
                                  .member = member_,
                                  .arrival = arrival,
                                  .lifetime = lifetime,
                                  .inbox = hears ? std::string_view(inbox_->name()) : "-"};
  const RedisCalls::Waiter* const as = how == Ask::once ? nullptr : &waiter;
  if (!owed()) {
    RedisCalls::Attempt attempt = calls_.attempt(request_, limits, as);
    if (std::holds_alternative<Doubtful>(attempt.outcome)) {
      saw_unanswered(std::move(attempt.connection), attempt.spent_by);
    }
    return attempt;
  }
  RedisCalls::Attempt attempt = calls_.attempt(*owing_, request_, limits, as);
  if (std::holds_alternative<Doubtful>(attempt.outcome)) {
    saw_unanswered(std::move(owing_), attempt.spent_by);
  } else if (!owing_->broken()) {  // all that was asked on it is answered
    owed_until_ = Deadline::min();
    owing_.reset();
  }
  return attempt;
}

Seat::Answer RedisSeat::ask(Ask how, Millis lifetime, const Limits& limits) {
  RedisCalls::Attempt attempt = this->attempt(no_queue_ ? Ask::once : how, lifetime, limits);
  if (!attempt.no_queue) return settled(std::move(attempt));
  // Such a waiter asks again and again, as everybody does who does not know the queue.
  inboxes_.refused(about("acquire", request_.key, std::get<Error>(std::move(attempt.outcome))));
  no_queue_ = true;
  in_queue_ = false;
  member_.clear();  // there is no place to be left
  return settled(this->attempt(Ask::once, lifetime, limits));
}

Seat::Answer RedisSeat::settled(RedisCalls::Attempt attempt) {
  if (const auto* granted = std::get_if<Granted>(&attempt.outcome)) {
    in_queue_ = in_doubt_ = false;
    return *granted;
  }
  if (auto* busy = std::get_if<Busy>(&attempt.outcome)) {
    in_doubt_ = false;
    if (!attempt.place) {
      in_queue_ = false;
      return std::move(*busy);
    }
    arrival_ = attempt.arrival;
    if (attempt.hearing_unknown) {
      inboxes_.refused(
          about("acquire", request_.key,
                {Errc::denied, concat({calls_.pool().endpoint().display,
                                       " does not tell whether a waiter can be reached (PUBSUB NUMSUB)"})}));
    }
    return Queued{std::move(*busy), *attempt.place};
  }
  Error error = std::holds_alternative<Error>(attempt.outcome) ? std::get<Error>(std::move(attempt.outcome))
                                                               : std::get<Doubtful>(std::move(attempt.outcome)).error;
  error = about("acquire", request_.key, std::move(error));
  if (!in_doubt_) return error;
  // Whatever became of this question, a former one may have been carried out.
  error.code = Errc::unknown_outcome;
  return InDoubt{std::move(error)};
}

Seat::Subscribed RedisSeat::subscribe(const Limits& limits) {
  if (!inbox_) inbox_ = inboxes_.fresh(token_.str());
  const Subscribed result = inbox_->connect(limits);
  hears_ = result == Subscribed::yes;
  if (result == Subscribed::refused) inboxes_.refused(inbox_->error());
  return result;
}

Seat::Heard RedisSeat::listen(const Limits& limits) {
  if (!hears_) {
    nap(limits);
    return limits.stop.stop_requested() ? Silence::stopped : Silence::time_is_up;
  }
  Inbox::Heard heard = inbox_->listen(token_.str(), limits);
  if (!heard.message) {
    hears_ = heard.silence != Silence::inbox_lost;
    return heard.silence;
  }
  // "token fence time key", or the token alone.
  std::string_view rest = std::string_view(*heard.message).substr(token_.str().size());
  const auto word = [&rest] {
    rest.remove_prefix(std::min<std::size_t>(1, rest.size()));
    const std::string_view first = rest.substr(0, rest.find(' '));
    rest.remove_prefix(first.size());
    return first;
  };
  const auto fence = static_cast<FencingToken>(to_number(word()));
  const std::int64_t server_time = to_number(word());
  rest.remove_prefix(std::min<std::size_t>(1, rest.size()));
  if (fence == FencingToken{} || rest != request_.key) return Grant{};
  in_queue_ = false;  // it was taken out when this was said
  return Grant{fence, server_time};
}

Released RedisSeat::leave(const Limits& limits) {
  std::unique_ptr<Connection> behind = owed() ? std::move(owing_) : nullptr;
  saw_unanswered(nullptr, owed_until_);  // unless it goes behind them, which is not told
  RedisDoubt all(calls_, std::move(behind), request_, Deadline::min(), member_);
  Released left = all.withdraw(limits);
  if (left.outcome == ReleaseOutcome::released || left.outcome == ReleaseOutcome::not_held) {
    in_queue_ = in_doubt_ = false;
  } else {
    all.abandon();  // it was tried; doubt() has what is left
  }
  return left;
}

std::unique_ptr<Doubt> RedisSeat::doubt() {
  return std::make_unique<RedisDoubt>(calls_, owed() ? std::move(owing_) : nullptr, request_, spent_by(), member_);
}

}  // namespace v0
}  // namespace redlease
