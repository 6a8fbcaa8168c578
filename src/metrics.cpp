#include "redlease/metrics.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>

#include "fork.hpp"

namespace redlease {
inline namespace v0 {

namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

// From a call on the same machine to a job that takes hours.
constexpr std::array<nanoseconds, 21> bounds{100us, 250us, 500us,  1ms, 2500us, 5ms, 10ms, 25ms, 50ms,  100ms, 250ms,
                                             500ms, 1s,    2500ms, 5s,  10s,    30s, 60s,  5min, 30min, 2h};
static_assert(std::is_sorted(bounds.begin(), bounds.end()));

class Counter {
 public:
  void add(std::uint64_t n = 1) noexcept { n_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t read() const noexcept { return n_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> n_{0};
};

// One number that goes both ways, so that no reader can see an end before its beginning.
class Gauge {
 public:
  void up() noexcept { n_.fetch_add(1, std::memory_order_relaxed); }
  // Never below zero: an end without a beginning is not held against those to come.
  void down() noexcept {
    auto n = n_.load(std::memory_order_relaxed);
    while (n > 0 && !n_.compare_exchange_weak(n, n - 1, std::memory_order_relaxed)) {
    }
  }
  std::uint64_t read() const noexcept { return n_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> n_{0};
};

class Histogram {
 public:
  void add(nanoseconds d) noexcept {
    d = std::max(d, nanoseconds(0));
    const auto bin = static_cast<std::size_t>(std::lower_bound(bounds.begin(), bounds.end(), d) - bounds.begin());
    // In this order, and read in the other: the sum may be ahead of the bins, never behind.
    sum_.fetch_add(d.count(), std::memory_order_relaxed);
    bins_[bin].fetch_add(1, std::memory_order_release);
  }

  DurationHistogram read() const {
    DurationHistogram all;
    all.buckets.reserve(bounds.size());
    for (std::size_t i = 0; i < bounds.size(); ++i) {
      all.count += bins_[i].load(std::memory_order_acquire);
      all.buckets.push_back({bounds[i], all.count});
    }
    all.count += bins_.back().load(std::memory_order_acquire);
    all.sum = nanoseconds(sum_.load(std::memory_order_relaxed));
    return all;
  }

 private:
  std::array<std::atomic<std::uint64_t>, bounds.size() + 1> bins_{};  // not cumulative; the last is for what is longer
  std::atomic<nanoseconds::rep> sum_{0};
};

struct Tally {
  Counter acquired, busy, unknown, unavailable;
  Histogram acquire_time;
  Gauge waiting;
  Histogram wait_time;
  Counter wait_attempts;
  Gauge held;
  Histogram hold_time;
  Counter renewed, renew_failed;
  Histogram renew_slack;
  std::array<Counter, 4> lost;  // by LossCause
  Counter released, release_failed;
  Counter unknown_outcomes;
  Counter orphans_withdrawn, orphans_dropped;
  Counter connected, connect_failed;
  Counter unheard;
  Counter stalls;
  Counter stalled_time;  // ns

  void tried(Counter& outcome, const Event& event) noexcept {
    outcome.add();
    acquire_time.add(event.elapsed);
  }
  void ended(const Event& event) noexcept {
    held.down();
    hold_time.add(event.held);
  }
  void gave_back(Counter& outcome, const Event& event) noexcept {
    outcome.add();
    if (event.loss == LossCause::deadline || event.loss == LossCause::max_hold) return;  // ended with lost()
    // Adopted and never renewed, it was not counted. But where a test's clock stands still, everything takes 0.
    if (event.held == 0ns && event.elapsed != 0ns) return;
    ended(event);
  }
  void doubted(const Event& event) noexcept {
    if (event.error != nullptr && event.error->code == Errc::unknown_outcome) unknown_outcomes.add();
  }
};

}  // namespace

struct Metrics::State {
  // Out of line: one copy of the way that only a forked child takes is enough.
  [[gnu::noinline]] Tally& tally() { return per_process.get(); }

  PerProcess<Tally> per_process{[] { return new Tally; }};
};

Metrics::Metrics() : state_(std::make_unique<State>()) {
  (void)state_->tally();  // so that no event allocates
}

Metrics::~Metrics() = default;

void Metrics::acquired(const Event& event) noexcept {
  Tally& tally = state_->tally();
  tally.held.up();
  tally.tried(tally.acquired, event);
}

void Metrics::busy(const Event& event) noexcept {
  Tally& tally = state_->tally();
  tally.tried(tally.busy, event);
}

void Metrics::unknown(const Event& event) noexcept {
  Tally& tally = state_->tally();
  tally.tried(tally.unknown, event);
  tally.unknown_outcomes.add();
}

void Metrics::unavailable(const Event& event) noexcept {
  Tally& tally = state_->tally();
  tally.tried(tally.unavailable, event);
}

void Metrics::waiting(const Event&) noexcept { state_->tally().waiting.up(); }

void Metrics::waited(const Event& event) noexcept {
  Tally& tally = state_->tally();
  tally.waiting.down();
  tally.wait_time.add(event.elapsed);
  tally.wait_attempts.add(event.attempts);
}

void Metrics::renewed(const Event& event) noexcept {
  Tally& tally = state_->tally();
  tally.renewed.add();
  if (event.slack == 0ns) {
    tally.held.up();  // adopted: ours from now on
  } else {
    tally.renew_slack.add(event.slack);
  }
}

void Metrics::renew_failed(const Event& event) noexcept {
  Tally& tally = state_->tally();
  tally.renew_failed.add();
  tally.doubted(event);
}

void Metrics::lost(const Event& event) noexcept {
  Tally& tally = state_->tally();
  const auto cause = static_cast<std::size_t>(event.loss.value_or(LossCause::deadline));
  if (cause < tally.lost.size()) tally.lost[cause].add();
  tally.ended(event);
}

void Metrics::released(const Event& event) noexcept {
  Tally& tally = state_->tally();
  tally.gave_back(tally.released, event);
}

void Metrics::release_failed(const Event& event) noexcept {
  Tally& tally = state_->tally();
  tally.gave_back(tally.release_failed, event);
  tally.doubted(event);
}

void Metrics::abandoned(const Event& event) noexcept { state_->tally().ended(event); }

void Metrics::orphan_withdrawn(const Event& event) noexcept {
  Tally& tally = state_->tally();
  (event.error == nullptr ? tally.orphans_withdrawn : tally.orphans_dropped).add();
}

void Metrics::connected(const Event& event) noexcept {
  Tally& tally = state_->tally();
  (event.error == nullptr ? tally.connected : tally.connect_failed).add();
}

void Metrics::unheard(const Event&) noexcept { state_->tally().unheard.add(); }

void Metrics::stalled(const Event& event) noexcept {
  Tally& tally = state_->tally();
  tally.stalls.add();
  tally.stalled_time.add(static_cast<std::uint64_t>(std::max(event.elapsed, nanoseconds(0)).count()));
}

MetricsSnapshot Metrics::snapshot() const {
  const Tally& t = state_->tally();
  const auto lost = [&](LossCause cause) { return t.lost[static_cast<std::size_t>(cause)].read(); };
  MetricsSnapshot s;
  s.acquired = t.acquired.read();
  s.busy = t.busy.read();
  s.unknown = t.unknown.read();
  s.unavailable = t.unavailable.read();
  s.acquire_time = t.acquire_time.read();
  s.waiting = t.waiting.read();
  s.wait_time = t.wait_time.read();
  s.wait_attempts = t.wait_attempts.read();
  s.held = t.held.read();
  s.hold_time = t.hold_time.read();
  s.renewed = t.renewed.read();
  s.renew_failed = t.renew_failed.read();
  s.renew_slack = t.renew_slack.read();
  s.lost_by_deadline = lost(LossCause::deadline);
  s.lost_gone = lost(LossCause::gone);
  s.lost_taken = lost(LossCause::taken);
  s.lost_by_max_hold = lost(LossCause::max_hold);
  s.released = t.released.read();
  s.release_failed = t.release_failed.read();
  s.unknown_outcomes = t.unknown_outcomes.read();
  s.orphans_withdrawn = t.orphans_withdrawn.read();
  s.orphans_dropped = t.orphans_dropped.read();
  s.connected = t.connected.read();
  s.connect_failed = t.connect_failed.read();
  s.unheard = t.unheard.read();
  s.stalls = t.stalls.read();
  s.stalled_time = nanoseconds(t.stalled_time.read());
  return s;
}

}  // namespace v0
}  // namespace redlease
