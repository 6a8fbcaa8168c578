#include "redlease/store/redis_store.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include "concat.hpp"
#include "fork.hpp"
#include "helper_names.hpp"
#include "redlease/wire/pool.hpp"
#include "store/inboxes.hpp"
#include "store/key_names.hpp"
#include "store/redis_calls.hpp"
#include "store/redis_seat.hpp"
#include "store/redis_upkeep.hpp"
#include "store/scripts.hpp"
#include "wire/server_errors.hpp"

namespace redlease {
inline namespace v0 {

struct RedisStore::State {
  Endpoint endpoint;
  std::shared_ptr<Observer> observer;
  const Clock& clock;
  PerProcess<Pool> pool;
  PerProcess<Inboxes> inboxes;

  RedisCalls calls() { return {pool.get(), clock}; }

  Released release(std::string_view key, std::string_view token, const Limits& limits, bool ping) {
    Released released = calls().release(key, token, limits, {}, ping);
    if (released.unheard) {
      inboxes.get().refused(about("release", key,
                                  {Errc::denied, concat({endpoint.display,
                                                         " does not let this user tell the next in the queue (PUBLISH, "
                                                         "PUBSUB NUMSUB), whose turn is kept until it asks"})}));
    }
    return released;
  }
};

namespace {

Renewal lost(long long code) {
  Renewal renewal;
  renewal.outcome = RenewOutcome::lost;
  renewal.cause = cause_of(code);
  return renewal;
}

Renewal not_renewed(std::string_view verb, std::string_view key, ScriptAnswer answer) {
  if (answer.error.code == Errc::not_a_lease) return lost(-1);  // something else is at the key
  Renewal renewal;
  renewal.outcome = answer.delivery == Delivery::in_doubt ? RenewOutcome::unknown : RenewOutcome::unavailable;
  renewal.error = error_of(verb, key, std::move(answer));
  return renewal;
}

// Of microseconds by the server's clock, which somebody may have set back.
Millis elapsed(std::int64_t since, std::int64_t now) noexcept {
  return std::max(Millis(0), std::chrono::duration_cast<Millis>(std::chrono::microseconds(now - since)));
}

// Members "token ttl lifetime floor inbox host:pid label" and when each came.
void read_queue(LeaseInfo& info, const Reply& members, std::int64_t now) {
  for (std::size_t i = 0; i + 1 < members.elements; i += 2) {
    std::string_view who = members.items[i].text;
    for (int words = 0; words < 5; ++words) who.remove_prefix(std::min(who.find(' '), who.size() - 1) + 1);
    if (who.ends_with(' ')) who.remove_suffix(1);  // the label may be empty
    info.queue.emplace_back(who);
    info.queued_for.push_back(elapsed(static_cast<std::int64_t>(to_real(members.items[i + 1].text)), now));
  }
}

}  // namespace

RedisStore::RedisStore(Endpoint endpoint, std::size_t max_connections, std::shared_ptr<Observer> observer,
                       const Clock& clock, std::size_t max_inboxes)
    : state_(new State{endpoint, observer, clock, PerProcess<Pool>([endpoint, max_connections, observer] {
                         return new Pool(endpoint, max_connections, observer);
                       }),
                       PerProcess<Inboxes>([this, max_inboxes] {
                         return new Inboxes(state_->endpoint, max_inboxes, state_->observer);
                       })}) {}

RedisStore::~RedisStore() = default;

std::string_view RedisStore::server() const noexcept { return state_->endpoint.display; }

Acquisition RedisStore::acquire(const AcquireRequest& request, const Limits& limits) {
  Acquisition outcome = state_->calls().acquire(request, limits);
  if (auto* error = std::get_if<Error>(&outcome)) *error = about("acquire", request.key, std::move(*error));
  if (auto* doubtful = std::get_if<Doubtful>(&outcome)) {
    doubtful->error = about("acquire", request.key, std::move(doubtful->error));
  }
  return outcome;
}

Renewal RedisStore::renew(std::string_view key, std::string_view token, Millis ttl, const Limits& limits) {
  const Decimal ttl_text(ttl.count());
  const std::array<std::string_view, 3> words{key, token, ttl_text};
  Renewal renewal;
  ScriptAnswer answer =
      state_->calls().run({Scripts::renew, 1, words}, limits, AfterDoubt::again, [&](const Reply& reply, bool) {
        if (!is_release_answer(reply)) return false;
        if (reply.integer == 1) {
          renewal.outcome = RenewOutcome::renewed;
        } else {
          renewal = lost(reply.integer);
        }
        return true;
      });
  if (answer.reply == nullptr) return not_renewed("renew", key, std::move(answer));
  renewal.counted_from = answer.sent;
  return renewal;
}

Renewal RedisStore::adopt(std::string_view key, std::string_view token, Millis ttl, const Limits& limits) {
  const HelperNames names(key);
  const Decimal ttl_text(ttl.count());
  const std::array<std::string_view, 4> words{key, names.meta(), token, ttl_text};
  Renewal renewal;
  ScriptAnswer answer =
      state_->calls().run({Scripts::adopt, 2, words}, limits, AfterDoubt::again, [&](const Reply& reply, bool) {
        if (has_shape(reply, "it") && reply.items[0].integer == 1) {
          renewal.outcome = RenewOutcome::renewed;
          renewal.fence = static_cast<FencingToken>(to_number(reply.items[1].text));
          return renewal.fence > FencingToken{0};
        }
        if (!has_shape(reply, "i")) return false;
        const long long code = reply.items[0].integer;
        if (code == 0 || code == -1) {
          renewal = lost(code);
        } else {
          renewal.error =
              about("adopt", key, {Errc::server_error, concat({server(), " has no fencing token left (2^53 - 2)"})});
        }
        return code == 0 || code == -1 || code == -3;
      });
  if (answer.reply == nullptr) return not_renewed("adopt", key, std::move(answer));
  renewal.counted_from = answer.sent;
  return renewal;
}

Released RedisStore::release(std::string_view key, std::string_view token, const Limits& limits) {
  return state_->release(key, token, limits, false);
}

Released RedisStore::hand_over(std::string_view key, std::string_view token, const Limits& limits) {
  return state_->release(key, token, limits, true);
}

Result<LeaseInfo> RedisStore::inspect(std::string_view key, const Limits& limits) {
  const HelperNames names(key);
  const std::array<std::string_view, 3> words{key, names.meta(), names.queue()};
  LeaseInfo info;
  ScriptAnswer answer =
      state_->calls().run({Scripts::inspect, 3, words}, limits, AfterDoubt::again, [&](const Reply& reply, bool) {
        if (!has_shape(reply, "iittttia")) return false;
        const auto& items = reply.items;
        info.waiters = static_cast<std::size_t>(std::max(items[6].integer, 0LL));
        read_queue(info, items[7], to_number(items[4].text));
        info.held = items[0].integer == 1;
        if (items[1].integer >= 0) info.remaining = Millis(items[1].integer);
        info.fence = static_cast<FencingToken>(to_number(items[2].text));
        if (items[3].text.empty()) return true;
        info.held_for = elapsed(to_number(items[3].text), to_number(items[4].text));
        const std::string& who = items[5].text;
        const auto space = who.find(' ');
        info.holder = who.substr(0, space);
        if (space != std::string::npos) info.label = who.substr(space + 1);
        return true;
      });
  if (answer.reply == nullptr) return error_of("inspect", key, std::move(answer));
  return info;
}

Result<bool> RedisStore::break_lease(std::string_view key, const Limits& limits) {
  const HelperNames names(key);
  const std::array<std::string_view, 4> words{key, names.meta(), names.queue(), names.seen()};
  bool removed = false;
  std::size_t too_long = 0;
  ScriptAnswer answer =
      state_->calls().run({Scripts::break_lease, 4, words}, limits, AfterDoubt::tell, [&](const Reply& reply, bool) {
        removed = reply.kind == Reply::Kind::integer && reply.integer >= 1;
        const bool refused = has_shape(reply, "ii");
        if (refused) too_long = static_cast<std::size_t>(reply.items[1].integer) + 1;
        return refused || is_release_answer(reply);
      });
  if (answer.reply == nullptr) return error_of("break", key, std::move(answer));
  if (too_long > 0) {
    return about(
        "break", key,
        {Errc::not_a_lease, concat({"the key at ", server(), " holds a value of ", std::to_string(too_long - 1),
                                    " bytes, and an owner token has 1 to 256; it was left alone"})});
  }
  return removed;
}

Result<Fenced> RedisStore::fenced_set(std::string_view key, std::string_view value, FencingToken fence,
                                      const Limits& limits) {
  const Decimal fence_text(static_cast<std::int64_t>(fence));
  const std::array<std::string_view, 3> words{key, fence_text, value};
  std::optional<Fenced> fenced;
  ScriptAnswer answer =
      state_->calls().run({Scripts::fenced_set, 1, words}, limits, AfterDoubt::tell, [&](const Reply& reply, bool) {
        if (has_shape(reply, "i")) return reply.items[0].integer == -4;
        if (!has_shape(reply, "it")) return false;
        fenced = Fenced{reply.items[0].integer == 1, static_cast<FencingToken>(to_number(reply.items[1].text))};
        return true;
      });
  if (answer.reply == nullptr) return error_of("fenced_set", key, std::move(answer));
  if (!fenced) {
    return about("fenced_set", key,
                 {Errc::not_a_lease, concat({"the key at ", server(),
                                             " holds something that fenced_set did not write; it was left alone"})});
  }
  return *fenced;
}

Result<Unit> RedisStore::ping(const Limits& limits) {
  auto lent = state_->pool.get().take(limits);
  if (!lent.has_value()) return lent.error();
  Connection& connection = *lent.value();
  std::string& frame = connection.frame();
  append_command(frame, {"PING"});
  if (connection.call(frame, limits) != Delivery::answered) return connection.error();
  if (connection.reply().is_error()) {
    const std::string& text = connection.reply().text;
    return advised({classify(text).code, concat({server(), " answered PING with ", text})}, text);
  }
  return Unit{};
}

std::unique_ptr<Upkeep> RedisStore::upkeep() {
  return std::make_unique<RedisUpkeep>(state_->endpoint, state_->observer, state_->clock);
}

std::unique_ptr<Seat> RedisStore::seat(const AcquireRequest& request) {
  return std::make_unique<RedisSeat>(state_->calls(), state_->inboxes.get(), request);
}

}  // namespace v0
}  // namespace redlease
