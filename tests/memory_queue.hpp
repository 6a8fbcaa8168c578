#pragma once
// What the tests of the queue of a MemoryStore stand on.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "redlease/store/memory_store.hpp"
#include "redlease/store/seat.hpp"
#include "support/fake_clock.hpp"

namespace redlease::testing_support {

using namespace std::chrono_literals;

inline const std::string key = "k";

class MemoryQueue : public testing::Test {
 protected:
  // The key is another's to begin with.
  void SetUp() override { ASSERT_TRUE(takes("another", 1min)); }

  std::unique_ptr<Seat> seat(std::string_view label = {}, Millis ttl = 1min, std::optional<FencingToken> floor = {}) {
    return store.seat({.key = key, .token = {}, .ttl = ttl, .floor = floor, .holder = "h:1", .label = label});
  }
  // In the queue already.
  std::unique_ptr<Seat> queued(std::string_view label = {}, Millis ttl = 1min, std::optional<FencingToken> floor = {}) {
    auto one = seat(label, ttl, floor);
    EXPECT_TRUE(std::holds_alternative<Seat::Queued>(ask(*one)));
    return one;
  }
  static Seat::Answer ask(Seat& one, Ask how = Ask::queue) { return one.ask(how, 3s, {}); }
  static std::optional<std::size_t> ahead_of(Seat& one) {
    const auto answer = ask(one);
    const auto* queued = std::get_if<Seat::Queued>(&answer);
    return queued ? std::optional(queued->place.ahead) : std::nullopt;
  }
  static bool acquires(Seat& one) { return std::holds_alternative<Granted>(ask(one)); }
  // What is there to be heard at once.
  static std::optional<Seat::Grant> heard(Seat& one) {
    const auto answer = one.listen({.deadline = LeaseClock::now(), .stop = {}});
    const auto* grant = std::get_if<Seat::Grant>(&answer);
    return grant ? std::optional(*grant) : std::nullopt;
  }
  static bool granted(Seat& one) {
    const auto grant = heard(one);
    return grant && grant->fence != FencingToken{};
  }

  Acquisition take(std::string_view token, Millis ttl = 1min) {
    return store.acquire({.key = key, .token = token, .ttl = ttl, .floor = {}, .holder = "h:2", .label = {}}, {});
  }
  bool takes(std::string_view token, Millis ttl = 1min) { return std::holds_alternative<Granted>(take(token, ttl)); }
  Released release(std::string_view token = "another") { return store.release(key, token, {}); }
  Released release(const Seat& of) { return release(of.token().str()); }
  LeaseInfo info() { return store.inspect(key, {}).value(); }
  bool free_and_nobody_waits() { return !info().held && info().waiters == 0; }

  FakeClock clock;
  MemoryStore store{clock};
};

}  // namespace redlease::testing_support
