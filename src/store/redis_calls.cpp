#include "store/redis_calls.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <utility>

#include "concat.hpp"
#include "helper_names.hpp"
#include "store/key_names.hpp"
#include "store/redis_doubt.hpp"
#include "store/release_call.hpp"
#include "store/scripts.hpp"

namespace redlease {
inline namespace v0 {

namespace {

std::int64_t micros(LeaseClock::duration d) noexcept {
  return std::chrono::duration_cast<std::chrono::microseconds>(d).count();
}

constexpr Millis stale_time{1'000};  // about eight minutes old

Error doubt_of(Error error) {
  error.detail +=
      ". The whole request left and no answer came, so the lease may be ours on the server: retry or withdraw";
  return {Errc::unknown_outcome, std::move(error.detail)};
}

Busy busy_of(const Reply& reply) {
  Busy busy;
  if (reply.items[1].integer >= 0) busy.remaining = Millis(reply.items[1].integer);
  busy.holder = reply.items[2].text;
  // "host:pid label", and the label may be empty.
  if (busy.holder.find(' ') + 1 == busy.holder.size() && !busy.holder.empty()) busy.holder.pop_back();
  return busy;
}

void place(RedisCalls::Attempt& busy, const Reply& reply, Deadline sent) {
  const auto& items = reply.items;
  busy.place = WaitPlan::Place{.remaining = std::get<Busy>(busy.outcome).remaining,
                               .ahead = static_cast<std::size_t>(std::max(items[4].integer, 0LL)),
                               .foreign = items[2].text.empty(),
                               .heard = items[6].integer != 0,
                               .sent = sent,
                               .server_time = to_number(items[3].text)};
  busy.arrival = to_number(items[5].text);
  busy.hearing_unknown = items[6].integer < 0;
}

// What an acquire's answer says first, if it is one.
std::optional<long long> acquire_code(const Reply& reply) noexcept {
  using Form = std::pair<int, std::string_view>;
  static constexpr std::array forms{Form{1, "itt"}, Form{0, "iit"}, Form{0, "iittiti"}, Form{-1, "it"}, Form{-3, "i"}};
  for (const auto& [code, shape] : forms) {
    if (has_shape(reply, shape) && reply.items[0].integer == code) return code;
  }
  return std::nullopt;
}

}  // namespace

bool is_release_answer(const Reply& reply) noexcept {
  return reply.kind == Reply::Kind::integer && reply.integer >= -1 && reply.integer <= 2;
}

Error about(std::string_view verb, std::string_view key, Error error) {
  error.detail = concat({verb, " ", quoted(key), ": ", error.detail});
  return error;
}

Error error_of(std::string_view verb, std::string_view key, ScriptAnswer answer) {
  if (answer.delivery == Delivery::in_doubt) {
    answer.error.code = Errc::unknown_outcome;
    answer.error.detail += ". The request left and no answer came: it may have been executed";
  }
  return about(verb, key, std::move(answer.error));
}

RedisCalls::Attempt RedisCalls::attempt(Connection& connection, const AcquireRequest& request, const Limits& limits,
                                        const Waiter* waiter) const {
  const HelperNames names(request.key);
  const Decimal ttl(request.ttl.count());
  const Decimal floor(request.floor ? static_cast<std::int64_t>(*request.floor) : 0);
  std::string who(request.holder);
  who.append(" ").append(request.label);
  // On a connection that has only renewed for long, clocks may have drifted apart.
  Deadline before = LeaseClock::now();
  if (connection.server_time_error(before) > stale_time) {
    if (auto error = connection.ask_time(limits)) return {*std::move(error), {}};
    before = LeaseClock::now();
  }
  for (int tries = 1;; ++tries, before = LeaseClock::now()) {
    const auto limit = limits.deadline > before ? limits.deadline - before : LeaseClock::duration::zero();
    const auto server_now = connection.server_time_at_most(before);
    const Decimal not_after(server_now ? *server_now + micros(limit) + micros(not_after_slack) : 0);
    const Deadline spent_by =
        server_now ? deadline_after(limits.deadline, not_after_slack + connection.server_time_error(before))
                   : Deadline::max();
    std::array<std::string_view, 14> words{request.key, names.meta(), names.queue(), names.seen(), request.token,
                                           ttl,         not_after,    floor,         who};
    std::size_t size = 9;
    if (waiter != nullptr) {
      for (const auto word : {waiter->how, waiter->member, waiter->arrival, waiter->lifetime, waiter->inbox}) {
        words.at(size++) = word;
      }
    }
    ScriptAnswer answer =
        redlease::run(connection, {Scripts::acquire, 4, std::span(words).first(size)}, limits, clock_);
    if (answer.reply == nullptr) {
      const bool no_queue =
          answer.refused == "ZADD" && (answer.error.code == Errc::denied || answer.error.code == Errc::not_a_lease);
      if (answer.delivery == Delivery::not_executed) {
        return {.outcome = std::move(answer.error), .spent_by = spent_by, .no_queue = no_queue};
      }
      return {Doubtful{nullptr, doubt_of(std::move(answer.error))}, spent_by};
    }
    const Reply& reply = *answer.reply;
    const auto code = acquire_code(reply);
    const std::int64_t fence = code == 1 ? to_number(reply.items[1].text) : 1;
    if (!code || fence <= 0) {
      not_understood(answer, connection);
      return {Doubtful{nullptr, doubt_of(std::move(answer.error))}, spent_by};
    }
    switch (*code) {
      case 1:
        connection.saw_server_time(before, LeaseClock::now(), to_number(reply.items[2].text));
        return {Granted{static_cast<FencingToken>(fence), answer.sent}, spent_by};
      case 0: {
        Attempt busy{busy_of(reply), spent_by};
        if (reply.elements == 7) {
          connection.saw_server_time(before, LeaseClock::now(), to_number(reply.items[3].text));
          place(busy, reply, answer.sent);
        }
        return busy;
      }
      case -1:
        connection.saw_server_time(before, LeaseClock::now(), to_number(reply.items[1].text));
        if (tries < 3 && LeaseClock::now() < limits.deadline && !limits.stop.stop_requested()) continue;
        return {Error{Errc::timed_out, concat({"the request reached ", connection.server(),
                                               " too late and was refused; nothing was executed"})},
                spent_by};
      default:
        return {Error{Errc::server_error, concat({connection.server(),
                                                  " has no fencing token above the last one (2^53 - 2); "
                                                  "nothing was granted. Choose another name"})},
                spent_by};
    }
  }
}

RedisCalls::Attempt RedisCalls::attempt(const AcquireRequest& request, const Limits& limits,
                                        const Waiter* waiter) const {
  for (int tries = 1;; ++tries) {
    auto lent = pool_.take(limits);
    if (!lent.has_value()) return {lent.error(), {}};
    Pool::Lent& connection = lent.value();
    Attempt attempt = this->attempt(*connection, request, limits, waiter);
    if (std::holds_alternative<Doubtful>(attempt.outcome)) {
      attempt.connection = connection.keep();
      return attempt;
    }
    const auto* error = std::get_if<Error>(&attempt.outcome);
    const bool stale = error != nullptr && error->code == Errc::connection_closed && connection->dead();
    if (!stale || !connection.used() || tries == 3 || LeaseClock::now() >= limits.deadline) return attempt;
  }
}

Acquisition RedisCalls::acquire(const AcquireRequest& request, const Limits& limits) const {
  Attempt attempt = this->attempt(request, limits);
  if (auto* doubtful = std::get_if<Doubtful>(&attempt.outcome)) {
    doubtful->doubt = std::make_unique<RedisDoubt>(*this, std::move(attempt.connection), request, attempt.spent_by);
  }
  return std::move(attempt.outcome);
}

Released RedisCalls::release(std::string_view key, std::string_view token, const Limits& limits,
                             std::string_view member, bool ping) const {
  Released released;
  const ReleaseCall call(key, token, member, ping);
  ScriptAnswer answer = run(call, limits, AfterDoubt::again, [&](const Reply& reply, bool doubted) {
    if (!is_release_answer(reply)) return false;
    if (reply.integer >= 1) {
      released.outcome = ReleaseOutcome::released;
      released.unheard = reply.integer == 2;
    } else if (doubted) {
      released.outcome = ReleaseOutcome::unknown;
      released.error = about(
          "release", key,
          {Errc::unknown_outcome,
           concat({"the connection to ", pool_.endpoint().display,
                   " broke behind the first release; the second found the lease no longer there, so either the first "
                   "gave it back or it was lost before"})});
    } else {
      released.outcome = ReleaseOutcome::not_held;
      released.cause = cause_of(reply.integer);
    }
    return true;
  });
  if (answer.reply != nullptr) return released;
  if (answer.error.code == Errc::not_a_lease) return {ReleaseOutcome::not_held, LossCause::taken, {}};
  released.outcome = answer.delivery == Delivery::in_doubt ? ReleaseOutcome::unknown : ReleaseOutcome::unavailable;
  released.error = error_of("release", key, std::move(answer));
  return released;
}

}  // namespace v0
}  // namespace redlease
