#include "works.hpp"

#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace bench {

namespace {

using namespace std::chrono_literals;
using redlease::Millis;

// A lock without a lock: no ttl, no owner, nobody who could die with it.
class TokenWaiter final : public Waiter {
 public:
  TokenWaiter(const std::string& url, const std::string& list)
      : raw_(url), pop_({"BLPOP", list, "0"}), push_({"LPUSH", list, token}) {}
  bool take() override { return raw_.call(pop_)->element[1]->str == std::string_view(token); }
  void pass() override { raw_.call(push_); }
  static constexpr const char* token = "token";

 private:
  Raw raw_;
  Prepared pop_, push_;
};

struct TokenTeam final : Team {
  explicit TokenTeam(std::string u) : url(std::move(u)) {}
  std::unique_ptr<Waiter> waiter(std::stop_token) override { return std::make_unique<TokenWaiter>(url, list); }
  static constexpr const char* list = "bench:token";
  const std::string url;
};

}  // namespace

Work token_work(const std::string& url, Raw& raw) {
  return {.team = [url] { return std::make_unique<TokenTeam>(url); },
          .prepare =
              [&raw] {
                raw.call({"DEL", TokenTeam::list});
                raw.call({"LPUSH", TokenTeam::list, TokenWaiter::token});
              },
          .wake =
              [&raw](std::size_t waiters) {
                for (std::size_t i = 0; i < waiters; ++i) raw.append({"LPUSH", TokenTeam::list, "over"});
                for (std::size_t i = 0; i < waiters; ++i) raw.receive();
              }};
}

namespace {

class LeaseWaiter final : public Waiter {
 public:
  LeaseWaiter(redlease::Client& client, const redlease::LeaseKey& key, redlease::LeaseOptions options,
              std::stop_token stop)
      : client_(client), key_(key), options_(std::move(options)), stop_(std::move(stop)) {}
  bool take() override {
    auto result = client_.acquire(key_, options_, stop_);
    const auto* unavailable = result.unavailable();
    if (unavailable != nullptr && !stop_.stop_requested()) throw std::runtime_error(unavailable->error.detail);
    lease_ = std::move(result).lease();
    if (!lease_ && !stop_.stop_requested()) throw std::runtime_error("an acquire came to nothing");
    return lease_.has_value();
  }
  void pass() override {
    if (lease_->release() == redlease::ReleaseOutcome::released) return;
    throw std::runtime_error("a release came to nothing: " + lease_->last_error().detail);
  }

 private:
  redlease::Client& client_;
  const redlease::LeaseKey key_;
  const redlease::LeaseOptions options_;
  const std::stop_token stop_;
  std::optional<redlease::Lease> lease_;
};

class LeaseTeam final : public Team {
 public:
  LeaseTeam(const std::string& url, std::string key, Millis ttl, const redlease::ClientOptions& options)
      : client_(url, options), key_(std::move(key)), options_{.ttl = ttl, .wait = 60s, .op_timeout = ttl / 6} {}
  std::unique_ptr<Waiter> waiter(std::stop_token stop) override {
    return std::make_unique<LeaseWaiter>(client_, key_, options_, std::move(stop));
  }
  // Nobody renews it, however long the others take to gather.
  std::unique_ptr<Waiter> opener() override {
    return std::make_unique<LeaseWaiter>(client_, key_, redlease::LeaseOptions{.ttl = 60s}, std::stop_token());
  }

 private:
  redlease::Client client_;
  const redlease::LeaseKey key_;
  const redlease::LeaseOptions options_;
};

}  // namespace

Work lease_work(const std::string& url, Millis ttl, const redlease::ClientOptions& options) {
  static int number = 0;  // a key of its own each time: nothing of the last one can be in the way
  return {.team = [url, ttl, options, key = "bench:handoff:" + std::to_string(++number)] {
    return std::make_unique<LeaseTeam>(url, key, ttl, options);
  }};
}

}  // namespace bench
