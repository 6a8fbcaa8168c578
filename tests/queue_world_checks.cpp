// What must hold in every world of the queue.
#include <algorithm>
#include <string>
#include <utility>

#include "queue_world.hpp"
#include "trace_line.hpp"

namespace redlease::testing_support {

using namespace std::chrono_literals;

void QueueWorld::check() {
  int holders = 0;
  for (const Client& client : clients_) holders += held(client) && client.granted_in == memory_;
  if (holders > 1 && weather_ != QueueWeather::stepped) broken("two hold at once");
  check_served();
}

void QueueWorld::check_turns() {
  for (const QueueServer::Turn& turn : std::exchange(server_.turns, {})) check_turn(turn);
}

void QueueWorld::check_turn(const QueueServer::Turn& turn) {
  using Fate = QueueServer::Fate;
  const auto found = std::ranges::find(clients_, turn.token, &Client::token);
  Client* const client = found != clients_.end() && waits(*found) ? &*found : nullptr;
  switch (turn.fate) {
    case Fate::placed:
      if (client == nullptr) return;
      if (weather_ < QueueWeather::storm && !has(QueueWeather::network) && client->arrival != 0 &&
          client->arrival != turn.arrival) {
        broken("it has lost its place");
      }
      if (client->stayed_since) return;
      if (!server_.no_count && !server_.no_publish && client->inbox_up && server_.hears(client->inbox)) {
        client->stayed_since = turn.arrival;
      }
      return;
    case Fate::passed_by_as_stale:
    case Fate::passed_by_as_deaf:
      ++tally_.passed_by;
      if (client == nullptr) return;
      note(client, "is passed by");
      client->stayed_since.reset();
      if (weather_ == QueueWeather::calm ||
          (weather_ == QueueWeather::wakes && turn.fate == Fate::passed_by_as_stale)) {
        broken("a live waiter is passed by");
      }
      return;
    case Fate::granted: break;
  }
  ++tally_.granted;
  tally_.kept += turn.kept;
  if (client != nullptr) client->stayed_since.reset();
  note(client, "is granted it by token", turn.token);
  check_given(turn.token);
  const auto retired = std::ranges::find(retired_, turn.token, &Retired::token);
  if (turn.announced && retired != retired_.end() && now_ > retired->by) broken("an inbox was not retired");
  const bool over = std::ranges::find(over_, turn.token) != over_.end();
  if (over && weather_ != QueueWeather::stepped) broken("what was given up is granted");
  for (Client& other : clients_) {
    other.quiet_since = other.clock.read(now_);
    other.quiet_asked = 0;
    if (weather_ == QueueWeather::stepped || !waits(other) || !other.stayed_since) continue;
    if (*other.stayed_since < turn.arrival) broken("client " + std::to_string(other.id) + " is passed over");
  }
}

// To somebody else than the client that holds it.
void QueueWorld::check_given(Token token) {
  if (weather_ == QueueWeather::stepped) return;
  for (const Client& client : clients_) {
    if (client.token != token && held(client) && client.granted_in == memory_) {
      broken("the server grants to another while client " + std::to_string(client.id) + " holds");
    }
  }
}

// A lease that is free, or kept for a waiter that does not know, has a holder within a heartbeat and a few round trips.
void QueueWorld::check_served() {
  if (has(QueueWeather::network)) return;  // nobody knows when there a question has its answer
  const Token holder = server_.holder(server_time());
  bool idle = holder == 0;
  for (const Client& client : clients_) {
    if (client.token == holder && waits(client)) idle = true;
  }
  for (const Client& client : clients_) {
    if (held(client)) idle = false;
  }
  if (!idle || closing_) idle_since_ = Deadline::max();
  if (!idle || closing_) return;
  idle_since_ = std::min(idle_since_, now_);
  const Span bound = Span(heartbeat_) * 102 / 100 + longest_delay_ * 12 + 200ms;
  for (const Client& client : clients_) {
    if (!waits(client)) continue;
    if (now_ - std::max({idle_since_, disturbed_until_, client.begun}) > bound) {
      broken("it is free, and client " + std::to_string(client.id) + " waits for it");
    }
  }
}

// With a holder that stays, a waiter asks once in a heartbeat.
void QueueWorld::check_quiet(Client& client, Deadline now) {
  if (weather_ != QueueWeather::calm || ttl_ < 3s || !client.stayed_since) {
    client.quiet_since = now;
    client.quiet_asked = 0;
    return;
  }
  ++client.quiet_asked;
  const double heartbeats =
      static_cast<double>((now - client.quiet_since).count()) / static_cast<double>(Span(heartbeat_).count());
  if (client.quiet_asked > 3) ++tally_.quiet;
  if (client.quiet_asked > 1 + heartbeats * 1.15) broken("it asks too often");
}

void QueueWorld::check_end() {
  for (const Client& client : clients_) {
    const bool ended = client.doing == Doing::nothing || client.doing == Doing::dead;
    if (!ended || !client.orphans.empty()) broken("something never ends");
  }
  if (weather_ == QueueWeather::stepped) return;
  const Token holder = server_.holder(server_time());
  const bool excused = std::ranges::find(excused_, holder) != excused_.end();
  if (holder != 0 && holder < QueueServer::foreign && !excused) broken("it stands though nobody wants it");
  for (const Token token : over_) {
    if (server_.may_serve(token, server_time())) broken("what was given up may still be granted");
  }
}

void QueueWorld::broken(std::string what) {
  note(nullptr, what.c_str());
  if (broken_.empty()) broken_ = std::move(what);
}

void QueueWorld::note(const Client* client, const char* what, std::uint64_t number) {
  if (trace_ == nullptr) return;
  const std::string who = client == nullptr ? "" : "client " + std::to_string(client->id) + " ";
  trace_->push_back(trace_line(now_, who, what, number));
}

}  // namespace redlease::testing_support
