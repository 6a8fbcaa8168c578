#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "redlease/clock.hpp"
#include "redlease/export.hpp"
#include "redlease/store/lease_store.hpp"
#include "redlease/wire/endpoint.hpp"

namespace redlease {
inline namespace v0 {

class Observer;

/// Leases on one Redis or Valkey server. Thread-safe; makes no connection before it needs one; a forked child starts
/// afresh.
class REDLEASE_EXPORT RedisStore final : public LeaseStore {
 public:
  /// `clock` stamps what is granted and must outlive the store; limits are always LeaseClock time.
  /// Of the waiters, `max_inboxes` have a connection of their own to be woken by; those beyond share one.
  explicit RedisStore(Endpoint, std::size_t max_connections = 16, std::shared_ptr<Observer> observer = nullptr,
                      const Clock& clock = Clock::real(), std::size_t max_inboxes = 64);
  ~RedisStore() override;

  Acquisition acquire(const AcquireRequest&, const Limits&) override;
  Renewal renew(std::string_view key, std::string_view token, Millis ttl, const Limits&) override;
  Renewal adopt(std::string_view key, std::string_view token, Millis ttl, const Limits&) override;
  Released release(std::string_view key, std::string_view token, const Limits&) override;
  Released hand_over(std::string_view key, std::string_view token, const Limits&) override;
  Result<LeaseInfo> inspect(std::string_view key, const Limits&) override;
  Result<bool> break_lease(std::string_view key, const Limits&) override;
  Result<Fenced> fenced_set(std::string_view key, std::string_view value, FencingToken, const Limits&) override;
  Result<Unit> ping(const Limits&) override;
  /// Over a connection of its own.
  std::unique_ptr<Upkeep> upkeep() override;
  std::unique_ptr<Seat> seat(const AcquireRequest&) override;
  std::string_view server() const noexcept override;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace v0
}  // namespace redlease
