#include "queue_server.hpp"

#include <algorithm>

namespace redlease::testing_support {

namespace {

constexpr int most_steps = 512;

constexpr std::int64_t micros(Millis d) noexcept { return d.count() * 1'000; }

}  // namespace

bool QueueServer::hears(Inbox inbox) const noexcept { return std::ranges::find(heard_, inbox) != heard_.end(); }

QueueServer::Answer QueueServer::acquire(const Question& question, std::int64_t now) {
  Answer answer{.said = Said::busy, .time = now};
  answer.place.server_time = now;
  if (now > question.not_after) {
    answer.said = Said::too_late;
    return answer;
  }
  const Token token = question.token;
  bool mine = holder(now) == token;
  if (mine) {
    expiry_ = std::max(expiry_, now + micros(question.ttl));
  } else if (holder(now) == 0) {
    const auto earlier = std::ranges::find(queue_, token, &Entry::token);
    const std::int64_t arrival = earlier != queue_.end() ? earlier->arrival : question.arrival;
    const auto turn = hand_over(token, 0, now);
    mine = turn == token || turn == Token{0};
    if (mine) grant(token, question.ttl, now, arrival != 0 ? arrival : now);
  }
  if (mine) {
    drop(token);
    answer.said = Said::acquired;
    answer.fence = fence_;
    return answer;
  }
  if (holder(now) == 0) answer.place.remaining = Millis{0};  // dead ones ahead
  if (holder(now) != 0) answer.place.remaining = Millis((expiry_ - now) / 1'000);
  answer.place.foreign = holder(now) >= foreign;
  if (question.how == Ask::last) drop(token);
  if (question.how == Ask::once || question.how == Ask::last) return answer;
  answer.said = Said::queued;
  answer.place.ahead = place(question, now);
  answer.arrival = queue_[answer.place.ahead].arrival;
  if (question.how == Ask::queue) answer.place.heard = no_count ? uncounted_is_heard : hears(question.inbox);
  return answer;
}

std::size_t QueueServer::place(const Question& question, std::int64_t now) {
  const Token token = question.token;
  const Inbox inbox = question.how == Ask::queue ? question.inbox : 0;
  auto entry = std::ranges::find(queue_, token, &Entry::token);
  if (entry == queue_.end()) {
    const std::int64_t arrival = question.arrival != 0 ? question.arrival : now;
    entry = std::ranges::upper_bound(queue_, arrival, {}, &Entry::arrival);
    entry = queue_.insert(entry, {token, question.ttl, question.lifetime, inbox, arrival});
  }
  entry->inbox = inbox;
  if (now - entry->arrival > micros(question.lifetime) / 3) {
    std::erase_if(seen_, [&](const Stamp& stamp) { return stamp.token == token; });
    seen_.push_back({token, now + micros(question.lifetime)});
  }
  turns.push_back({Fate::placed, token, entry->arrival});
  return static_cast<std::size_t>(entry - queue_.begin());
}

bool QueueServer::release(Token token, std::int64_t now) {
  const bool mine = holder(now) == token;
  if (!mine) {
    drop(token);
    return false;
  }
  value_ = 0;
  expiry_ = 0;
  hand_over(0, token, now);
  return true;
}

bool QueueServer::renew(Token token, Millis ttl, std::int64_t now) {
  if (holder(now) != token) return false;
  expiry_ = std::max(expiry_, now + micros(ttl));
  return true;
}

bool QueueServer::set(Token token, Millis ttl, std::int64_t now) {
  if (holder(now) != 0) return false;
  value_ = token;
  expiry_ = now + micros(ttl);
  return true;
}

std::optional<QueueServer::Token> QueueServer::hand_over(Token stop_at, Token leaving, std::int64_t now) {
  for (int step = 0; step < most_steps; ++step) {
    if (queue_.empty()) return Token{0};
    const Entry entry = queue_.front();
    const bool dead = stale(entry, now);
    drop(entry.token);
    if (entry.token == leaving) continue;
    if (entry.token == stop_at) return stop_at;
    if (dead || (entry.inbox != 0 && !no_count && !hears(entry.inbox))) {
      turns.push_back({dead ? Fate::passed_by_as_stale : Fate::passed_by_as_deaf, entry.token, entry.arrival});
      continue;
    }
    const bool announced = entry.inbox != 0 && !no_count && !no_publish;
    grant(entry.token, announced ? entry.ttl : entry.lifetime / 2, now, entry.arrival);
    turns.back().announced = announced;
    turns.back().kept = !announced;
    if (entry.inbox != 0 && !no_publish) wakes.push_back({entry.inbox, entry.token, announced ? fence_ : 0, now});
    return entry.token;
  }
  return std::nullopt;
}

bool QueueServer::stale(const Entry& entry, std::int64_t now) const noexcept {
  const std::int64_t lifetime = micros(entry.lifetime);
  if (now > entry.arrival + lifetime / 3) {
    const auto stamp = std::ranges::find(seen_, entry.token, &Stamp::token);
    if (stamp != seen_.end()) return now > stamp->alive_until;
  }
  return now > entry.arrival + lifetime;
}

void QueueServer::grant(Token token, Millis ttl, std::int64_t now, std::int64_t arrival) {
  value_ = token;
  expiry_ = now + micros(ttl);
  fence_ = std::max(fence_ + 1, static_cast<std::uint64_t>(now));
  turns.push_back({Fate::granted, token, arrival});
}

void QueueServer::drop(Token token) noexcept {
  std::erase_if(queue_, [&](const Entry& entry) { return entry.token == token; });
  std::erase_if(seen_, [&](const Stamp& stamp) { return stamp.token == token; });
}

void QueueServer::lose_queue() noexcept {
  queue_.clear();
  seen_.clear();
}

void QueueServer::restart(bool empty) noexcept {
  heard_.clear();
  if (!empty) return;
  lose_queue();
  value_ = 0;
  expiry_ = 0;
  fence_ = 0;
}

bool QueueServer::may_serve(Token token, std::int64_t now) const noexcept {
  const auto entry = std::ranges::find(queue_, token, &Entry::token);
  return entry != queue_.end() && !stale(*entry, now) && (entry->inbox == 0 || no_count || hears(entry->inbox));
}

}  // namespace redlease::testing_support
