#pragma once
// What the tests of the promises, of broken connections and of servers in trouble stand on.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "redlease/redlease.hpp"
#include "redlease/store/lease_store.hpp"
#include "support/fault_proxy.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "support/sleepless.hpp"

namespace redlease::testing_support {

using namespace std::chrono_literals;

// In no error, ever: see expect_for_people.
inline const std::string secret = "pa55-of-the-test";

// One for the whole program, for tests that leave it as they found it.
inline RedisServer& shared_server() {
  static RedisServer server;
  return server;
}

inline std::string fresh_key() {
  static int keys = 0;
  return "key:" + std::to_string(++keys);
}

// Where the fence of a name without braces is kept.
inline std::string meta_of(const std::string& key) { return key + ":{" + key + "}lease:meta"; }

inline std::string queue_of(const std::string& key) { return key + ":{" + key + "}lease:queue"; }

inline LeaseOptions limited(Millis op_timeout, Millis ttl = 30s) { return {.ttl = ttl, .op_timeout = op_timeout}; }

inline std::string describe(const AcquireResult& result) {
  std::string text(to_string(result.outcome()));
  if (const auto* unavailable = result.unavailable()) text += ": " + unavailable->error.detail;
  return text;
}

// The one that must have come; anything else is std::runtime_error.
inline Lease lease_of(AcquireResult result) {
  const std::string text = describe(result);
  if (auto lease = std::move(result).lease()) return *std::move(lease);
  throw std::runtime_error("not acquired but " + text);
}
inline Claim claim_of(AcquireResult result) {
  const std::string text = describe(result);
  if (auto claim = std::move(result).claim()) return *std::move(claim);
  throw std::runtime_error("not unknown but " + text);
}
inline Error error_of(const AcquireResult& result) {
  if (const auto* unavailable = result.unavailable()) return unavailable->error;
  throw std::runtime_error("not unavailable but " + describe(result));
}
inline Busy busy_of(const AcquireResult& result) {
  if (const auto* busy = result.busy()) return *busy;
  throw std::runtime_error("not busy but " + describe(result));
}
// A wait's last try has 20 ms. Where the machine is too busy for that the end is in doubt, which is the truth: again.
template <class Acquire>
AcquireResult without_doubt(Acquire acquire) {
  AcquireResult result = acquire();
  for (int i = 0; i < 5 && result.outcome() == AcquireOutcome::unknown; ++i) result = acquire();
  return result;
}
// A lease to begin with, and a connection, however many tries the machine needs.
inline Lease taken(Client& client, const LeaseKey& key, const LeaseOptions& options = {}) {
  AcquireResult result = client.try_acquire(key, options);
  for (int i = 0; i < 20 && result.outcome() != AcquireOutcome::acquired; ++i)
    result = client.try_acquire(key, options);
  return lease_of(std::move(result));
}
inline bool reachable(Client& client) {
  return eventually([&] { return client.ping().has_value(); }, 20s);
}

// The claim of a request that the server carried out and whose answer the proxy withholds, until it is healed. Comes
// over the connection that `client` has already.
inline Claim unanswered(Client& client, FaultProxy& proxy, const std::string& key) {
  EXPECT_TRUE(reachable(client));
  proxy.withhold_replies();
  return claim_of(client.try_acquire(key, limited(300ms)));
}

// What the best of three runs took, or the first that is good enough: the machine may have other things to do.
template <class Run>
Millis best_of_three(Millis enough, Run run) {
  Millis best = 1h;
  for (int i = 0; i < 3 && best > enough; ++i) best = std::min<Millis>(best, run());
  return best;
}

inline std::uint64_t fence_of(const Lease& lease) {
  return static_cast<std::uint64_t>(lease.fencing_token().value_or(FencingToken{0}));
}

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// An error tells the key and the server, and never the password.
inline void expect_for_people(const Error& error, std::string_view key, std::string_view server) {
  EXPECT_TRUE(error.code) << error.detail;
  EXPECT_TRUE(contains(error.detail, key)) << "the key \"" << key << "\" is not in: " << error.detail;
  EXPECT_TRUE(contains(error.detail, server)) << "the server \"" << server << "\" is not in: " << error.detail;
  EXPECT_FALSE(contains(error.detail, secret)) << error.detail;
}

// SIGSTOP until the end of the scope, or go_on().
class Stopped {
 public:
  explicit Stopped(RedisServer& server) : server_(&server) { server.stop(); }
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;
  ~Stopped() { go_on(); }
  void go_on() {
    if (auto* server = std::exchange(server_, nullptr)) server->cont();
  }

 private:
  RedisServer* server_;
};

// A store that calls back before and behind each acquire, renew and release.
class SpyStore : public LeaseStore {
 public:
  explicit SpyStore(std::shared_ptr<LeaseStore> store) : store_(std::move(store)) {}
  std::function<void(std::string_view verb)> before{[](std::string_view) {}}, behind{[](std::string_view) {}};

  Acquisition acquire(const AcquireRequest& request, const Limits& limits) override {
    return spied("acquire", [&] { return store_->acquire(request, limits); });
  }
  Renewal renew(std::string_view key, std::string_view token, Millis ttl, const Limits& limits) override {
    return spied("renew", [&] { return store_->renew(key, token, ttl, limits); });
  }
  Renewal adopt(std::string_view key, std::string_view token, Millis ttl, const Limits& limits) override {
    return store_->adopt(key, token, ttl, limits);
  }
  Released release(std::string_view key, std::string_view token, const Limits& limits) override {
    return spied("release", [&] { return store_->release(key, token, limits); });
  }
  Result<LeaseInfo> inspect(std::string_view key, const Limits& limits) override {
    return store_->inspect(key, limits);
  }
  Result<bool> break_lease(std::string_view key, const Limits& limits) override {
    return store_->break_lease(key, limits);
  }
  Result<Fenced> fenced_set(std::string_view key, std::string_view value, FencingToken fence,
                            const Limits& limits) override {
    return store_->fenced_set(key, value, fence, limits);
  }
  Result<Unit> ping(const Limits& limits) override { return store_->ping(limits); }
  std::string_view server() const noexcept override { return store_->server(); }

 private:
  template <class Call>
  std::invoke_result_t<Call> spied(std::string_view verb, Call call) {
    before(verb);
    auto answer = call();
    behind(verb);
    return answer;
  }
  std::shared_ptr<LeaseStore> store_;
};

enum class Way { tcp, unix_socket };
inline void PrintTo(Way way, std::ostream* to) { *to << (way == Way::tcp ? "tcp" : "unix"); }

// Each test runs over TCP and over a unix socket, with a proxy in between where it wants one.
class OverBothWays : public ::testing::TestWithParam<Way> {
 protected:
  // So that the server knows the scripts, and a request whose reply is withheld was carried out.
  OverBothWays() {
    Client first(url);
    Lease lease = taken(first, fresh_key());
    (void)lease.renew();
    (void)lease.release();
    (void)first.inspect(key);
  }

  static ServerAddress address_of(const RedisServer& server) {
    return GetParam() == Way::tcp ? server.tcp() : server.unix_socket();
  }
  static FaultProxy::Front front() {
    return GetParam() == Way::tcp ? FaultProxy::Front::tcp : FaultProxy::Front::unix_socket;
  }

  RedisServer& server{shared_server()};
  const std::string url{address_of(server).url()};
  RawClient truth{server.tcp()};
  const std::string key{fresh_key()};
  Client client{url};
};

inline std::string name_of(const ::testing::TestParamInfo<Way>& info) {
  return info.param == Way::tcp ? "Tcp" : "Unix";
}
inline const auto both_ways = ::testing::Values(Way::tcp, Way::unix_socket);

}  // namespace redlease::testing_support
