#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "redlease/export.hpp"
#include "redlease/observer.hpp"

namespace redlease {
inline namespace v0 {

/// How often something took how long, as a Prometheus histogram has it.
struct DurationHistogram {
  struct Bucket {
    std::chrono::nanoseconds le{};  ///< its upper bound, inclusive
    std::uint64_t count{};          ///< of all durations up to it: buckets are cumulative
  };
  std::vector<Bucket> buckets{};  ///< with the bounds ascending
  std::uint64_t count{};          ///< of all, those above the last bound too
  std::chrono::nanoseconds sum{};
};

/// What a Metrics has counted so far. docs/metrics.md says more of each.
struct MetricsSnapshot {
  std::uint64_t acquired{}, busy{}, unknown{}, unavailable{};  ///< tries to acquire, by outcome
  DurationHistogram acquire_time{};                            ///< of each try

  std::uint64_t waiting{};  ///< calls of acquire() that go on now
  DurationHistogram wait_time{};
  std::uint64_t wait_attempts{};  ///< tries that finished waits have taken

  std::uint64_t held{};  ///< leases that are ours now
  DurationHistogram hold_time{};

  std::uint64_t renewed{}, renew_failed{};
  DurationHistogram renew_slack{};  ///< how far before the old deadline each renewal came

  std::uint64_t lost_by_deadline{}, lost_gone{}, lost_taken{}, lost_by_max_hold{};
  std::uint64_t released{}, release_failed{};

  /// Acquires, renewals and releases whose request left and whose answer did not come.
  std::uint64_t unknown_outcomes{};
  std::uint64_t orphans_withdrawn{}, orphans_dropped{};

  std::uint64_t connected{}, connect_failed{};
  std::uint64_t unheard{};  ///< Clients whose waiters can not be woken; see Observer::unheard
  std::uint64_t stalls{};
  std::chrono::nanoseconds stalled_time{};
};

/// Counts what happens, for Prometheus or for reading it in the program. Hand one to ClientOptions::observer, the same
/// one to all Clients of a process.
///
/// Thread-safe. An event costs a few atomic additions: no lock, no allocation. A forked child starts from zero.
class REDLEASE_EXPORT Metrics : public Observer {
 public:
  Metrics();
  ~Metrics() override;

  /// Taken while events go on, it may be a few events apart between one number and the next. Within a histogram
  /// `count` and the buckets always agree.
  MetricsSnapshot snapshot() const;

  /// The snapshot in Prometheus' text exposition format (version 0.0.4), whatever the locale. No label names a lease:
  /// Prometheus would keep time series for every name that was ever used.
  std::string to_prometheus() const;

  void acquired(const Event&) noexcept override;
  void busy(const Event&) noexcept override;
  void unknown(const Event&) noexcept override;
  void unavailable(const Event&) noexcept override;
  void waiting(const Event&) noexcept override;
  void waited(const Event&) noexcept override;
  void renewed(const Event&) noexcept override;
  void renew_failed(const Event&) noexcept override;
  void lost(const Event&) noexcept override;
  void released(const Event&) noexcept override;
  void release_failed(const Event&) noexcept override;
  void abandoned(const Event&) noexcept override;
  void orphan_withdrawn(const Event&) noexcept override;
  void connected(const Event&) noexcept override;
  void unheard(const Event&) noexcept override;
  void stalled(const Event&) noexcept override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace v0
}  // namespace redlease
