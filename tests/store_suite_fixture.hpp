#pragma once
// What the tests of store_suite.hpp stand on. A World brings the store:
//
//   struct World {
//     LeaseStore& store();
//     std::string key();       // a name that nobody has used yet
//     void advance(Millis);    // time passes: moves a fake clock, or sleeps
//     Deadline now();          // of the clock that counted_from is read from
//   };
//
// Times are chosen so that a real server on a busy machine passes: what must still be held is held for hours, what must
// have ended has ended several times over.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "redlease/store/lease_store.hpp"

namespace redlease {

template <class World>
class LeaseStoreSuite : public ::testing::Test {
 protected:
  static constexpr Millis hour{3'600'000};
  static constexpr Millis minute{60'000};
  static constexpr Millis brief{50};
  static constexpr Millis past_brief{120};
  static constexpr std::string_view holder = "host:17";

  AcquireRequest request(std::string_view token, Millis ttl = hour) {
    return {.key = key, .token = token, .ttl = ttl, .floor = {}, .holder = holder, .label = {}};
  }
  Acquisition acquire(std::string_view token, Millis ttl = hour) { return store.acquire(request(token, ttl), {}); }

  // The fence of a grant that must come; 0, and a failure, if it does not.
  FencingToken granted(const Acquisition& acquisition) {
    const auto* grant = std::get_if<Granted>(&acquisition);
    const auto* error = std::get_if<Error>(&acquisition);
    EXPECT_NE(grant, nullptr) << "outcome " << acquisition.index() << (error ? ": " + error->detail : "");
    return grant ? grant->fence : FencingToken{};
  }
  FencingToken grant(std::string_view token, Millis ttl = hour) { return granted(acquire(token, ttl)); }

  std::optional<Busy> busy(std::string_view token) {
    auto acquisition = acquire(token);
    const auto* busy = std::get_if<Busy>(&acquisition);
    return busy ? std::optional(*busy) : std::nullopt;
  }

  static std::error_code refused(const Acquisition& acquisition) {
    const auto* error = std::get_if<Error>(&acquisition);
    return error ? error->code : std::error_code{};
  }
  template <class T>
  static std::error_code refused(const Result<T>& result) {
    return result.has_value() ? std::error_code{} : result.error().code;
  }

  Renewal renew(std::string_view token, Millis ttl = hour) { return store.renew(key, token, ttl, {}); }
  Released release(std::string_view token) { return store.release(key, token, {}); }
  LeaseInfo inspect() { return store.inspect(key, {}).value(); }
  Millis remaining() { return inspect().remaining.value_or(Millis{-1}); }

  void expect_lost(const Renewal& renewal, LossCause cause) {
    EXPECT_EQ(to_string(renewal.outcome), "lost") << renewal.error.detail;
    EXPECT_EQ(renewal.cause, cause);
  }
  void expect_not_held(const Released& released, LossCause cause) {
    EXPECT_EQ(to_string(released.outcome), "not_held") << released.error.detail;
    EXPECT_EQ(released.cause, cause);
  }
  void expect_released(std::string_view token) {
    const auto released = release(token);
    EXPECT_EQ(to_string(released.outcome), "released") << released.error.detail;
    EXPECT_EQ(released.cause, std::nullopt);
  }

  World world;
  LeaseStore& store{world.store()};
  std::string key{world.key()};
};

TYPED_TEST_SUITE_P(LeaseStoreSuite);

}  // namespace redlease
