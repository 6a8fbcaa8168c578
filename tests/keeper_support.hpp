#pragma once
// What the tests of keeping leases stand on.
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "promise_support.hpp"
#include "support/temp_dir.hpp"

namespace redlease::testing_support {

// REDLEASE_LONG=1 takes the long way where there is one.
inline bool long_run() {
  const char* value = std::getenv("REDLEASE_LONG");
  return value != nullptr && std::string_view(value) == "1";
}

// When a token was stopped.
class StopTime {
 public:
  explicit StopTime(const std::stop_token& token) : callback_(token, [this] { at_ = LeaseClock::now(); }) {}
  bool stopped() const { return at() != Deadline::max(); }
  Deadline at() const { return at_.load(); }  // max: it was not

 private:
  std::atomic<Deadline> at_{Deadline::max()};
  std::stop_callback<std::function<void()>> callback_;
};

// What an on_lost was told.
struct Told {
  std::atomic<int> times{0};
  std::atomic<LossCause> cause{};
  std::atomic<Deadline> at{Deadline::max()};

  std::function<void(LossCause)> recorder() {
    return [this](LossCause why) {
      at = LeaseClock::now();
      cause = why;
      ++times;
    };
  }
};

// Counts what the keeping of leases tells.
struct KeeperEvents : Observer {
  std::atomic<int> renewals{0}, failed_renewals{0}, losses{0}, withdrawn{0}, given_up{0}, connections{0};
  std::atomic<LeaseClock::rep> least_slack{LeaseClock::duration::max().count()};

  void renewed(const Event& e) noexcept override {
    ++renewals;
    LeaseClock::rep least = least_slack;
    while (e.slack.count() < least && !least_slack.compare_exchange_weak(least, e.slack.count())) {
    }
  }
  void renew_failed(const Event&) noexcept override { ++failed_renewals; }
  void lost(const Event&) noexcept override { ++losses; }
  void orphan_withdrawn(const Event& e) noexcept override { ++(e.error == nullptr ? withdrawn : given_up); }
  void connected(const Event& e) noexcept override { connections += e.error == nullptr; }
};

// Threads that never rest.
class Load {
 public:
  explicit Load(int threads) {
    for (int i = 0; i < threads; ++i) {
      crew_.emplace_back([](const std::stop_token& stop) {
        std::atomic<unsigned> work{0};
        while (!stop.stop_requested()) ++work;
      });
    }
  }

 private:
  std::vector<std::jthread> crew_;
};

// How long the machine let a thread wait that does next to nothing. Where that is long, nobody can be on time.
class Witness {
 public:
  Witness() = default;
  Millis longest_stall() const { return Millis(longest_.load()); }

 private:
  static constexpr Millis nap{5};
  std::atomic<Millis::rep> longest_{0};
  std::jthread thread_{[this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const Stopwatch watch;
      std::this_thread::sleep_for(nap);
      longest_ = std::max(longest_.load(), (watch.elapsed_ms() - nap).count());
    }
  }};
};

// Runs it until it finds no fault. One that it finds while the machine stalled for longer than `allowed` proves
// nothing: again, up to ten times.
template <class Run>
void unless_stalled(Millis allowed, Run run) {
  std::string fault;
  for (int i = 0; i < 10; ++i) {
    const Witness witness;
    try {
      fault = run();
    } catch (const AcquireError& error) {
      fault = error.what();
    }
    if (fault.empty()) return;
    const Millis stall = witness.longest_stall();
    ASSERT_GT(stall, allowed) << fault << "; the machine's longest stall: " << stall.count() << " ms";
  }
  FAIL() << "the machine stalls too much to tell: " << fault;
}

inline std::string in_ms(LeaseClock::duration d) {
  return std::to_string(std::chrono::duration<double, std::milli>(d).count()) + " ms";
}

// Nothing if `at` is not before `due` and not much later.
inline std::string fault_of(std::string_view what, Deadline at, Deadline due, Millis slack = Millis(50)) {
  if (at == Deadline::max()) return std::string(what) + " never came";
  if (at < due) return std::string(what) + " came too early, by " + in_ms(due - at);
  if (at > due + slack) return std::string(what) + " came too late, by " + in_ms(at - due);
  return {};
}

inline void pause_for(LeaseClock::duration d) { std::this_thread::sleep_for(d); }

// Of this process. A sanitizer's own comes with the first.
inline std::ptrdiff_t threads() {
  std::thread([] {}).join();
  return entries("/proc/self/task");
}
inline std::ptrdiff_t open_files() { return entries("/proc/self/fd"); }

// Options for a lease that is kept, or just watched.
inline LeaseOptions kept(Millis ttl) { return {.ttl = ttl}; }
inline LeaseOptions watched(Millis ttl) { return {.ttl = ttl, .renew = false}; }

// A guard to begin with, however many tries a loaded machine needs for that.
inline LeaseGuard guarded(Client& client, const LeaseKey& key, const LeaseOptions& options) {
  for (int i = 0;; ++i) {
    try {
      return {client, key, options};
    } catch (const AcquireError&) {
      if (i == 40) throw;
    }
    pause_for(50ms);
  }
}

inline Faults black_hole() {
  Faults faults;
  faults.up.withhold = faults.down.withhold = true;
  return faults;
}

// Whoever comes next, waiting in the background from now on.
class Contender {
 public:
  Contender(const std::string& url, const std::string& key, Millis ttl = Millis(30'000))
      : client_(url), thread_([this, key, ttl] {
          auto result = client_.acquire(key, {.ttl = ttl, .wait = Millis(30'000)}, stop_.get_token());
          const Deadline now = LeaseClock::now();
          lease_ = std::move(result).lease();
          if (lease_) at_ = now;
        }) {}
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;
  ~Contender() { stop_.request_stop(); }

  bool has_it() const { return at() != Deadline::max(); }
  Deadline at() const { return at_.load(); }
  // Of the lease, once has_it().
  std::string token() const { return lease_->token().str(); }

 private:
  Client client_;
  std::stop_source stop_;
  std::optional<Lease> lease_;
  std::atomic<Deadline> at_{Deadline::max()};
  std::jthread thread_;
};

// A server of its own, for tests that do things to it.
class OnItsOwnServer : public ::testing::Test {
 protected:
  RedisServer server;
  RawClient truth{server.unix_socket()};
  std::shared_ptr<KeeperEvents> events{std::make_shared<KeeperEvents>()};
  const std::string key{"key"};
};

class KeptLease : public OnItsOwnServer {
 protected:
  // "" if it is kept for so long, the server's own expiry bounded all the while.
  std::string kept_for(LeaseGuard& guard, Millis ttl, LeaseClock::duration time) {
    const Deadline end = deadline_in(time);
    while (LeaseClock::now() < end) {
      if (!guard.held()) return "lost: " + std::string(guard.loss() ? to_string(*guard.loss()) : "?");
      const auto left = truth.pttl(key);
      if (left == -1) return "the key never expires";
      if (left > ttl.count()) return "the key lives for " + std::to_string(left) + " ms";
      pause_for(5ms);
    }
    return guard.stop_token().stop_requested() ? "told to stop though held" : "";
  }
};

}  // namespace redlease::testing_support
