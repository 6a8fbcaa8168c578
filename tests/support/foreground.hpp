#pragma once
// A server on which nothing is done from the background: for tests that count connections, or that compare what a call
// told with what the server has.
#include <memory>
#include <string>

#include "redlease/store/redis_store.hpp"
#include "redlease/wire/endpoint.hpp"

namespace redlease::testing_support {

class Foreground final : public LeaseStore {
 public:
  explicit Foreground(const std::string& url, std::size_t max_connections = 16)
      : store_(parse_endpoint(url), max_connections) {}

  Acquisition acquire(const AcquireRequest& request, const Limits& limits) override {
    return store_.acquire(request, limits);
  }
  Renewal renew(std::string_view key, std::string_view token, Millis ttl, const Limits& limits) override {
    return store_.renew(key, token, ttl, limits);
  }
  Renewal adopt(std::string_view key, std::string_view token, Millis ttl, const Limits& limits) override {
    return store_.adopt(key, token, ttl, limits);
  }
  Released release(std::string_view key, std::string_view token, const Limits& limits) override {
    return store_.release(key, token, limits);
  }
  Result<LeaseInfo> inspect(std::string_view key, const Limits& limits) override { return store_.inspect(key, limits); }
  Result<bool> break_lease(std::string_view key, const Limits& limits) override {
    return store_.break_lease(key, limits);
  }
  Result<Fenced> fenced_set(std::string_view key, std::string_view value, FencingToken fence,
                            const Limits& limits) override {
    return store_.fenced_set(key, value, fence, limits);
  }
  Result<Unit> ping(const Limits& limits) override { return store_.ping(limits); }
  std::string_view server() const noexcept override { return store_.server(); }
  std::unique_ptr<Upkeep> upkeep() override { return std::make_unique<Idle>(*this); }

 private:
  // Never ready. What waits and wakes is the plain one's.
  class Idle final : public Upkeep {
   public:
    explicit Idle(LeaseStore& store) : plain_(plain_upkeep(store)) {}
    bool ready(LeaseClock::duration) override { return false; }
    void add(const Task&) override {}
    void flush(const Limits&) override {}
    void wait(Deadline until, News& news) override { plain_->wait(until, news); }
    void wake() noexcept override { plain_->wake(); }

   private:
    std::unique_ptr<Upkeep> plain_;
  };

  RedisStore store_;
};

}  // namespace redlease::testing_support
