#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "redlease/clock.hpp"
#include "redlease/export.hpp"
#include "redlease/store/lease_store.hpp"

namespace redlease {
inline namespace v0 {

/// Leases kept in this process, with the same rules as on a server: for programs of one process, for development, and
/// for users' own unit tests, which hand in a Clock of theirs and move it.
///
/// Waiters are served in the order they came: a release hands the lease to the first of them and wakes that one alone.
///
/// Thread-safe. Never in doubt and never unavailable. A forked child starts with an empty store.
class REDLEASE_EXPORT MemoryStore final : public LeaseStore {
 public:
  /// `clock` must outlive the store.
  explicit MemoryStore(const Clock& clock = Clock::real());
  ~MemoryStore() override;

  /// The store called `name` in this process, made with Clock::real() if nobody has it now. It lives as long as
  /// somebody does.
  static std::shared_ptr<MemoryStore> shared(std::string_view name);

  Acquisition acquire(const AcquireRequest&, const Limits&) override;
  Renewal renew(std::string_view key, std::string_view token, Millis ttl, const Limits&) override;
  Renewal adopt(std::string_view key, std::string_view token, Millis ttl, const Limits&) override;
  Released release(std::string_view key, std::string_view token, const Limits&) override;
  Result<LeaseInfo> inspect(std::string_view key, const Limits&) override;
  Result<bool> break_lease(std::string_view key, const Limits&) override;
  Result<Fenced> fenced_set(std::string_view key, std::string_view value, FencingToken, const Limits&) override;
  Result<Unit> ping(const Limits&) override;
  std::unique_ptr<Seat> seat(const AcquireRequest&) override;
  std::string_view server() const noexcept override;

 private:
  struct State;
  class QueueSeat;
  explicit MemoryStore(std::unique_ptr<State>) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace v0
}  // namespace redlease
