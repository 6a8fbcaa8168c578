#pragma once
// What a Client, its leases and its claims share.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "fork.hpp"
#include "redlease/client.hpp"
#include "redlease/lease.hpp"
#include "redlease/observer.hpp"
#include "redlease/options.hpp"
#include "redlease/store/lease_store.hpp"

namespace redlease {
inline namespace v0 {

struct Core {
  Core(std::shared_ptr<LeaseStore>, const ClientOptions&);

  std::shared_ptr<LeaseStore> store;
  std::shared_ptr<Observer> observer;  // may be null
  const Clock& clock;
  std::string prefix;
  double drift;
  PerProcess<std::string> holder;  // "host:pid"

  // How much earlier than the server the holder counts the lease as over: both clocks may run at slightly different
  // rates.
  LeaseClock::duration margin(Millis ttl) const noexcept {
    using namespace std::chrono_literals;
    return std::chrono::nanoseconds(std::llround(static_cast<double>(ttl.count()) * drift * 1e6)) + 2ms;
  }

  // Tells the observer, if there is one. The server's name is filled in.
  void tell(void (Observer::*method)(const Event&) noexcept, Event event) const noexcept {
    if (!observer) return;
    event.server = store->server();
    ((*observer).*method)(event);
  }
};

// Throws std::invalid_argument if the options have a flaw.
template <class Options>
const Options& checked(const Options& options) {
  if (const auto what = flaw(options)) throw std::invalid_argument("redlease: " + std::string(*what));
  return options;
}

// What inspect, break_lease, ping and fenced_set may take.
inline Limits short_call() noexcept { return {deadline_in(Millis(1'000)), {}}; }

// Prefix and name; throws std::invalid_argument if they do not go together.
std::string full_name(const Core&, std::string_view name);

struct Client::State {
  std::shared_ptr<Core> core;
};

// One lease asked for: what stays the same from try to try.
struct Wish {
  std::shared_ptr<Core> core;
  LeaseKey key;
  std::string full_key;  // with the prefix
  Millis ttl{}, op_timeout{};
  std::optional<FencingToken> floor{};
  std::string label{};
  std::uint64_t generation{fork_generation()};

  // Throws std::invalid_argument for flawed options and names.
  Wish(const std::shared_ptr<Core>&, const LeaseKey&, const LeaseOptions&);

  bool in_forked_child() const noexcept { return generation != fork_generation(); }
  AcquireRequest request(const OwnerToken&) const;
};

// A held lease whose deadline has passed is lost, though its phase stays: see Lease::State::loss.
enum class Phase : std::uint8_t { adopted, held, lost, released };

// "its deadline passed"
std::string_view how(LossCause) noexcept;

struct Lease::State {
  State(Wish w, OwnerToken t, Phase p) : wish(std::move(w)), token(std::move(t)), phase(p) {}

  Wish wish;
  OwnerToken token;
  Phase phase;
  Deadline acquired{}, deadline{Deadline::min()};
  Deadline cap{Deadline::max()};  // max_hold
  std::optional<FencingToken> fence{};
  std::optional<LossCause> cause{};
  Error last_error{};

  const Core& core() const noexcept { return *wish.core; }
  void count_from(Deadline counted_from) noexcept;
  std::optional<LossCause> loss() const noexcept;
  void lose(LossCause) noexcept;
  void explain(std::string_view why) noexcept;
};

struct Claim::State {
  Wish wish;
  OwnerToken token;
  std::unique_ptr<Doubt> doubt;
  Error error;
};

// Of a withdrawal: the doubt is over.
constexpr bool nothing_left(ReleaseOutcome outcome) noexcept {
  return outcome == ReleaseOutcome::released || outcome == ReleaseOutcome::not_held;
}

struct LeaseMaker {
  static const std::shared_ptr<Core>& core(const Client& client) noexcept { return client.state_->core; }
  static Lease::State& state(Lease& lease) noexcept { return *lease.state_; }
  static bool moved_from(const Lease& lease) noexcept { return !lease.state_; }
  static Lease adopted(Wish, const OwnerToken&);

  // One try with a fresh token.
  static AcquireResult acquire(const Wish&, const Limits&);
  static AcquireResult retry(Claim, const Limits&);
  static ReleaseOutcome withdraw(Claim&, const Limits&);

 private:
  static AcquireResult settle(const Wish&, const OwnerToken&, Acquisition, Deadline begun, const Limits&);
  static AcquireResult too_late(const Wish&, const OwnerToken&, const Limits&);
  static Claim claim(const Wish&, const OwnerToken&, Doubtful);
};

}  // namespace v0
}  // namespace redlease
