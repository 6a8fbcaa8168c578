#pragma once
// Waiters at a store, and the server's own view of their queue.
#include <algorithm>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "promise_support.hpp"
#include "redlease/store/redis_store.hpp"
#include "redlease/store/seat.hpp"
#include "redlease/wire/endpoint.hpp"
#include "store/key_names.hpp"
#include "store/scripts.hpp"
#include "support/monitor.hpp"

namespace redlease::testing_support {

inline constexpr Millis lifetime{60s};  // longer than any test

// Far more than anything here takes.
inline Limits ample() { return {deadline_in(10s), {}}; }

inline std::string describe(const Seat::Answer& answer) {
  if (std::holds_alternative<Granted>(answer)) return "granted";
  if (std::holds_alternative<Busy>(answer)) return "busy";
  if (std::holds_alternative<Seat::Queued>(answer)) return "queued";
  if (const auto* doubt = std::get_if<Seat::InDoubt>(&answer)) return "in doubt: " + doubt->error.detail;
  return "error: " + std::get<Error>(answer).detail;
}

// The one answer that must have come; anything else is std::runtime_error.
template <class Wanted>
Wanted only(Seat::Answer answer) {
  const std::string text = describe(answer);
  if (auto* wanted = std::get_if<Wanted>(&answer)) return std::move(*wanted);
  throw std::runtime_error("the answer was " + text);
}

// A Seat and what its request points to.
class Waiter {
 public:
  Waiter(LeaseStore& store, std::string key, std::string label, Millis ttl = 30s, std::uint64_t floor = 0)
      : key_(std::move(key)),
        label_(std::move(label)),
        seat_(store.seat({.key = key_,
                          .token = {},
                          .ttl = ttl,
                          .floor = static_cast<FencingToken>(floor),
                          .holder = "host:1",
                          .label = label_})) {}

  const std::string& token() const { return seat_->token().str(); }
  Seat::Answer ask(Ask how = Ask::queue) { return seat_->ask(how, lifetime, ample()); }
  void subscribe() {
    if (seat_->subscribe(ample()) != Seat::Subscribed::yes) throw std::runtime_error("no inbox");
  }
  // As a waiter does that has found the lease busy.
  Seat::Queued enqueue() {
    if (!seat_->has_inbox()) subscribe();
    return only<Seat::Queued>(ask());
  }
  std::optional<Seat::Grant> hears(Millis limit = 10s) {
    const Seat::Heard heard = seat_->listen({deadline_in(limit), {}});
    if (const auto* grant = std::get_if<Seat::Grant>(&heard)) return *grant;
    return std::nullopt;
  }
  Seat& seat() { return *seat_; }
  void go_away() { seat_.reset(); }

 private:
  const std::string key_, label_;
  std::unique_ptr<Seat> seat_;
};

// One run of the acquire script, for what a Seat leaves to the clock.
struct RawAsk {
  std::string token;
  std::string arrival{"0"};
  std::string inbox{"-"};
  std::string not_after{"0"};
  std::string life{std::to_string(lifetime.count())};
  std::string how{"q"};

  std::string member() const { return token + " 30000 " + life + " 0 " + inbox + " host:1 " + token; }
};

class QueueTest : public ::testing::Test {
 protected:
  explicit QueueTest(RedisServer& at = shared_server()) : server(at) {}
  void TearDown() override {
    for (const auto& helper : {meta, queue, seen}) EXPECT_NE(truth.pttl(helper), -1) << helper << " stays for ever";
  }

  std::uint64_t hold(const std::string& token = "holder", Millis ttl = 60s) {
    Acquisition outcome =
        store.acquire({.key = key, .token = token, .ttl = ttl, .holder = "host:0", .label = "first"}, ample());
    const auto* granted = std::get_if<Granted>(&outcome);
    if (granted == nullptr) throw std::runtime_error("the lease is not free");
    return static_cast<std::uint64_t>(granted->fence);
  }
  Busy busy_try() {
    Acquisition outcome = store.acquire({.key = key, .token = "passer-by", .ttl = 30s, .holder = "host:2"}, ample());
    if (auto* busy = std::get_if<Busy>(&outcome)) return std::move(*busy);
    throw std::runtime_error("a try was not busy");
  }
  bool free_try(const std::string& token = "passer-by") {
    const Acquisition outcome = store.acquire({.key = key, .token = token, .ttl = 30s, .holder = "host:2"}, ample());
    return std::holds_alternative<Granted>(outcome);
  }
  ReleaseOutcome release(const std::string& token = "holder") { return store.release(key, token, ample()).outcome; }

  RawReply script(const Script& of, std::vector<std::string> arguments) {
    std::vector<std::string> argv{"EVAL", std::string(of.source()), "4", key, meta, queue, seen};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return truth.command(argv);
  }
  RawReply ask(const RawAsk& ask) {
    return script(Scripts::acquire, {ask.token, "30000", ask.not_after, "0", "host:1 " + ask.token, ask.how,
                                     ask.member(), ask.arrival, ask.life, ask.inbox});
  }

  std::int64_t server_now() {
    const RawReply time = truth.command({"TIME"});
    return std::stoll(time.elements.at(0).text) * 1'000'000 + std::stoll(time.elements.at(1).text);
  }
  std::string seconds_ago(int seconds) { return std::to_string(server_now() - std::int64_t{seconds} * 1'000'000); }

  // Into the queue behind the library's back.
  void plant(const std::string& member, const std::string& arrival) {
    ASSERT_EQ(truth.command({"ZADD", queue, arrival, member}).integer, 1);
    truth.command({"PEXPIRE", queue, "3600000"});
  }
  std::vector<std::string> members() {
    std::vector<std::string> all;
    for (const RawReply& each : truth.command({"ZRANGE", queue, "0", "-1"}).elements) all.push_back(each.text);
    return all;
  }
  static std::string word(const std::string& member, int number) {
    std::istringstream words(member);
    std::string text;
    while (number-- >= 0) words >> text;
    return text;
  }
  static std::string inbox_in(const std::string& member) { return word(member, 4); }
  std::vector<std::string> queued_tokens() {
    std::vector<std::string> tokens;
    for (const std::string& member : members()) tokens.push_back(word(member, 0));
    return tokens;
  }
  std::string inbox_of(const Waiter& waiter) {
    for (const std::string& member : members()) {
      if (member.starts_with(waiter.token())) return inbox_in(member);
    }
    throw std::runtime_error("not in the queue");
  }
  long long listeners(const std::string& inbox) {
    return truth.command({"PUBSUB", "NUMSUB", "redlease:inbox:" + inbox}).elements.at(1).integer;
  }
  // All inboxes at the server lose their connections.
  void kill_inboxes() { truth.command({"CLIENT", "KILL", "TYPE", "pubsub"}); }
  std::string holder() { return truth.get(key).value_or(""); }
  std::uint64_t fence() {
    const std::string text = truth.get(meta).value_or("0");
    return std::stoull(text);
  }

  RedisServer& server;
  RawClient truth{server.tcp()};
  const std::string key{fresh_key()};
  const std::string meta{helper_name(key, meta_suffix)}, queue{helper_name(key, queue_suffix)},
      seen{helper_name(key, seen_suffix)};
  RedisStore store{parse_endpoint(server.url_tcp())};
};

using Tokens = std::vector<std::string>;

}  // namespace redlease::testing_support
