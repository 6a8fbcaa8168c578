#include "world.hpp"

#include <algorithm>

namespace redlease::testing_support {

using namespace std::chrono_literals;

World::World(std::uint64_t seed, Tally& tally, std::vector<std::string>* trace)
    : dice_(seed), tally_(tally), trace_(trace), weather_(static_cast<Weather>(seed % weathers)) {
  ++tally_.worlds;
  now_ = Deadline{} + 1h;
  const Millis ttl(10 + dice_.below(std::uint64_t{1} << (3 + dice_.below(19))));
  terms_.ttl = ttl;
  terms_.margin = Span(ttl) / 100 + 2ms;
  terms_.op_timeout = Millis(1 + dice_.below(static_cast<std::uint64_t>(ttl.count()) / 3));
  if (dice_.chance(50)) terms_.stop_before = Millis(dice_.below(static_cast<std::uint64_t>(ttl.count()) / 2 + 1));
  if (dice_.chance(30)) max_hold_ = Span(ttl) / 2 + dice_.upto(ttl * 6);
  // There and back within op_timeout; else often, but not always.
  longest_delay_ = Span(terms_.op_timeout) * 45 / 100;
  if (weather_ != Weather::calm) longest_delay_ = longest_delay_ * static_cast<int>(1 + dice_.below(4));
  const auto rate = [&] { return 1 + (static_cast<double>(dice_.below(9'901)) - 4'950) / 1e6; };  // 1 % between any two
  server_clock_.rate = rate();
  clients_.resize(2 + dice_.below(3));
  for (Client& client : clients_) {
    client.id = static_cast<std::uint32_t>(&client - clients_.data());
    client.clock.rate = rate();
    client.try_at = client.clock.read(now_ + dice_.upto(ttl));
    plan_wake(client);
  }
  end_ = now_ + ttl * 12;
  if (weather_ >= Weather::storm) push(now_ + dice_.upto(ttl * 4), Kind::trouble, {});
}

std::string World::run() {
  for (std::uint64_t count = 0; broken_.empty() && !events_.empty() && events_.top().at < end_; ++count) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    ++tally_.events;
    if (count > 20'000) broken("it does not come to rest");
    Client& client = clients_[event.message.client];
    switch (event.kind) {
      case Kind::arrival: arrive(event.message); break;
      case Kind::trouble: trouble(); break;
      case Kind::reply:
        client.inbox.push_back(event.message);
        step(client, false);
        break;
      case Kind::wake:
        if (now_ == client.woken_at) client.woken_at = Deadline::max();
        if (weather_ >= Weather::stalls && dice_.chance(4)) {
          ++tally_.stalls;
          client.stalled_until = std::max(client.stalled_until, now_ + dice_.upto(terms_.ttl * 2));
          note(&client, "stalls");
        }
        step(client, false);
        break;
      case Kind::connected: {
        client.connecting = false;
        const bool works = serving() && (weather_ == Weather::calm || !dice_.chance(10));
        client.connected = works;
        if (works) client.connections.push_back({epoch_, false, {}, {}});
        if (works) client.oldest_limit = Deadline::max();
        if (!works) client.connect_at = client.clock.read(now_) + std::max<Span>(dice_.upto(terms_.ttl) / 20, 100us);
        step(client, !works);
      }
    }
    check();
  }
  return broken_;
}

void World::push(Deadline at, Kind kind, const Message& message) { events_.push({at, ++order_, kind, message}); }

LeaseClock::duration World::delay() {
  if (weather_ != Weather::calm && dice_.chance(2)) return dice_.upto(terms_.ttl * 2);
  return dice_.upto(longest_delay_);
}

// The clock was read for it already; it may yet take a while until it leaves.
void World::send(Client& client, Message message) {
  Connection& connection = client.connections.back();
  message.client = client.id;
  message.connection = static_cast<std::uint32_t>(client.connections.size() - 1);
  message.epoch = connection.epoch;
  client.oldest_limit = std::min(client.oldest_limit, deadline_after(message.sent, terms_.op_timeout));
  Deadline leaves = now_;
  if (weather_ >= Weather::stalls && dice_.chance(1)) {
    ++tally_.stalls;
    leaves = client.stalled_until = std::max(client.stalled_until, now_ + dice_.upto(terms_.ttl * 2));
    note(&client, "stalls before it sends");
  }
  connection.to = std::max(connection.to, leaves + delay());
  if (weather_ != Weather::calm && !connection.cut && dice_.chance(3)) {
    ++tally_.cuts;
    connection.cut = true;
    note(&client, "connection cut, request lost", message.number);
    message.said = Said::unknown;
    if (dice_.chance(50)) push(connection.to, Kind::reply, message);  // the client hears of it
    return;
  }
  if (!connection.cut) push(connection.to, Kind::arrival, message);
}

void World::arrive(Message message) {
  if (message.epoch != epoch_) return;
  if (!serving()) return push(paused_until_, Kind::arrival, message);
  Client& client = clients_[message.client];
  Connection& connection = client.connections[message.connection];
  const bool faults = weather_ != Weather::calm;
  if (faults && dice_.chance(1)) {
    ++tally_.refused;
    message.said = Said::unavailable;
  } else if (faults && dice_.chance(1)) {
    ++tally_.unsent;
    message.said = Said::again;
  } else {
    carry_out(message);
  }
  if (faults && !connection.cut && dice_.chance(3)) {
    ++tally_.cuts;
    connection.cut = true;
    note(&client, "connection cut, reply lost", message.number);
  }
  if (connection.cut) return;
  connection.back = std::max(connection.back, now_ + delay());
  push(connection.back, Kind::reply, message);
}

// What the scripts do.
void World::carry_out(Message& message) {
  const Deadline time = server_clock_.read(now_);
  if (value_ != 0 && time >= expiry_) value_ = 0;
  const bool mine = value_ == message.token;
  message.said = Said::not_ours;
  message.cause = value_ == 0 ? LossCause::gone : LossCause::taken;
  switch (message.verb) {
    case Verb::acquire:
      if (time > message.not_after || (value_ != 0 && !mine)) return;
      if (!mine) grant(message);
      break;
    case Verb::renew:
      if (!mine) return;
      break;
    case Verb::release:
      if (!mine) return;
      value_ = 0;
  }
  if (message.verb != Verb::release) expiry_ = std::max(expiry_, time + terms_.ttl);
  message.said = Said::done;
}

void World::grant(const Message& message) {
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(server_clock_.read(now_).time_since_epoch());
  fence_ = std::max(fence_ + 1, static_cast<std::uint64_t>(micros.count()));
  ++tally_.grants;
  note(&clients_[message.client], "is granted token", message.token);
  value_ = message.token;
  expiry_ = {};
  check_grant(fence_);
}

// The server stands still for a while, or starts again, with its memory or without.
void World::trouble() {
  paused_until_ = now_ + 1us + dice_.upto(terms_.ttl * 3 / 2);
  if (dice_.chance(60)) {
    ++tally_.restarts;
    ++epoch_;
    if (weather_ == Weather::forgetful && dice_.chance(60)) {
      ++tally_.forgotten;
      value_ = fence_ = 0;
      forgot_ = true;
    }
  }
  note(nullptr, forgot_ ? "the server is troubled, forgetful" : "the server is troubled", epoch_);
  push(paused_until_ + dice_.upto(terms_.ttl * 4), Kind::trouble, {});
}

}  // namespace redlease::testing_support
