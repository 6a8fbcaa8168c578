#include "queue_world.hpp"

#include <algorithm>
#include <utility>

namespace redlease::testing_support {

using namespace std::chrono_literals;

namespace {

constexpr int most_events = 700;  // of an open world; then it closes

}  // namespace

QueueWorld::QueueWorld(std::uint64_t seed, QueueTally& tally, std::vector<std::string>* trace)
    : dice_(seed), tally_(tally), trace_(trace), weather_(static_cast<QueueWeather>(seed % queue_weathers)) {
  ++tally_.worlds;
  now_ = Deadline{} + 1h;
  ttl_ = Millis(20 + dice_.below(std::uint64_t{1} << (6 + dice_.below(11))));
  margin_ = Span(ttl_) / 100 + 2ms;
  op_timeout_ = Millis(2 + dice_.below(static_cast<std::uint64_t>(ttl_.count()) / 3));
  // There and back within op_timeout; else often, but not always.
  longest_delay_ = std::min<Span>(Span(op_timeout_) * 45 / 100, 100ms);
  if (has(QueueWeather::network)) longest_delay_ = longest_delay_ * static_cast<int>(1 + dice_.below(4));
  hold_ = dice_.chance(30) ? Span(ttl_) / 4 : Span(ttl_) * static_cast<int>(1 + dice_.below(6));
  if (dice_.chance(20)) hold_ = 20s;
  if (dice_.chance(20)) hold_ = Span(op_timeout_) / 4;
  late_ = static_cast<unsigned>(dice_.chance(50) ? 2 : dice_.below(25));
  const auto rate = [&] { return 1 + (static_cast<double>(dice_.below(9'901)) - 4'950) / 1e6; };  // 1 % between any two
  server_clock_.rate = rate();
  server_.uncounted_is_heard = dice_.chance(50);
  clients_.resize(3 + dice_.below(4));
  for (Client& client : clients_) {
    client.id = static_cast<std::uint32_t>(&client - clients_.data());
    client.clock.rate = rate();
    client.try_at = client.clock.read(now_ + dice_.upto(ttl_));
    plan_wake(client);
  }
  const WaitPlan plan({.start = now_, .give_up = now_, .ttl = ttl_});
  heartbeat_ = plan.heartbeat();
  lifetime_ = plan.lifetime();
  end_ = now_ + heartbeat_ * 12 + ttl_ * 4;
  disturb(now_);
  if (weather_ != QueueWeather::calm) push(now_ + dice_.upto(heartbeat_ * 2), Kind::trouble, 0);
}

std::string QueueWorld::run() {
  for (int count = 0; broken_.empty() && !events_.empty(); ++count) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    if (!closing_ && (now_ >= end_ || count >= most_events)) {
      note(nullptr, "closing");
      closing_ = true;
      for (Client& client : clients_) client.stop_at = client.clock.read(now_ + dice_.upto(heartbeat_ * 2));
      for (Client& client : clients_) step(client);
    }
    ++tally_.events;
    if (count > 50'000) broken("it does not come to rest");
    happen(event);
    check();
  }
  if (broken_.empty()) check_end();
  return broken_;
}

void QueueWorld::happen(const Event& event) {
  Client& client = clients_[event.client];
  const bool same_life = event.life == client.life;
  switch (event.kind) {
    case Kind::arrival: return arrive(event.message);
    case Kind::trouble: return trouble();
    case Kind::inbox_end: return server_.unsubscribe(event.inbox);
    case Kind::reply:
      if (!same_life) return;
      client.replies.push_back(event.message);
      break;
    case Kind::wake_up:
      if (!same_life || client.inbox != event.inbox || !client.inbox_up) return;
      client.heard.push_back(wakes_[event.message]);
      break;
    case Kind::inbox_seen_lost:
      if (!same_life || client.inbox != event.inbox) return;
      note(&client, "has lost its inbox");
      client.inbox_up = false;
      client.inbox_lost = true;
      break;
    case Kind::wake:
      if (now_ == client.woken_at) client.woken_at = Deadline::max();
      if (has(QueueWeather::clients) && !closing_ && client.doing != Doing::dead && dice_.chance(3)) {
        if (dice_.chance(20)) return crash(client);
        ++tally_.stalls;
        client.stalled_until = std::max(client.stalled_until, now_ + dice_.upto(std::max(ttl_ * 2, heartbeat_ * 4)));
        disturb(client.stalled_until);
        note(&client, "stalls");
      }
  }
  step(client);
}

std::int64_t QueueWorld::server_time() const noexcept {
  return (server_clock_.read(now_).time_since_epoch() + server_step_) / 1us;
}

void QueueWorld::push(Deadline at, Kind kind, std::uint32_t client, std::uint32_t message, Inbox inbox) {
  events_.push({at, ++order_, kind, client, clients_[client].life, inbox, message});
}

LeaseClock::duration QueueWorld::delay() {
  if (has(QueueWeather::network) && dice_.chance(late_))
    return dice_.upto(dice_.chance(30) ? ttl_ * 2 : op_timeout_ * 3);
  return dice_.upto(longest_delay_);
}

// The one in use, or a new one.
QueueWorld::Connection& QueueWorld::connection(Client& client, std::optional<std::uint32_t>& in_use) {
  if (!in_use) {
    in_use = static_cast<std::uint32_t>(client.connections.size());
    const Deadline made = now_ + delay();
    client.connections.push_back({epoch_, false, made, made});
  }
  return client.connections[*in_use];
}

bool QueueWorld::waits(const Client& client) const noexcept {
  return client.doing >= Doing::deciding && client.doing <= Doing::listening;
}

bool QueueWorld::held(const Client& client) const noexcept {
  return client.doing == Doing::holding && client.clock.read(now_) < client.deadline;
}

}  // namespace redlease::testing_support
