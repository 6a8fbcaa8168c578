#pragma once
// What a Client, its leases and its claims share.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "fork.hpp"
#include "redlease/client.hpp"
#include "redlease/lease.hpp"
#include "redlease/observer.hpp"
#include "redlease/options.hpp"
#include "redlease/store/lease_store.hpp"
#include "service/keeper.hpp"

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
  PerProcess<Keeper> keeper;

  // How much earlier than the server the holder counts the lease as over: both clocks may run at slightly different
  // rates.
  LeaseClock::duration margin(Millis ttl) const noexcept {
    using namespace std::chrono_literals;
    return std::chrono::nanoseconds(std::llround(static_cast<double>(ttl.count()) * drift * 1e6)) + 2ms;
  }

  // The time, for the observer alone: if there is none, no clock is read.
  Deadline told_at() const noexcept { return observer ? clock.now() : Deadline(); }

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

// What is known of a lease for as long as it is held.
struct Tenure {
  std::shared_ptr<Core> core;
  LeaseKey key;
  std::shared_ptr<const std::string> prefixed{};                        // null: there is no prefix
  std::chrono::duration<std::int32_t, std::milli> ttl{}, op_timeout{};  // there may be very many of these
  std::uint64_t generation{fork_generation()};

  // Throws std::invalid_argument for flawed options and names.
  Tenure(const std::shared_ptr<Core>&, const LeaseKey&, const LeaseOptions&);

  const std::string& full_key() const noexcept { return prefixed ? *prefixed : key.str(); }
  bool in_forked_child() const noexcept { return generation != fork_generation(); }
  // What may be left of a token of it, for as long as the ttl from now or from when it is spent. `place`: Doubt::place.
  Orphan orphan(const OwnerToken&, Deadline spent_by = Deadline::min(), std::string_view place = {}) const;
};

// One lease asked for: what stays the same from try to try.
struct Wish : Tenure {
  std::optional<FencingToken> floor{};
  std::string label{};

  Wish(const std::shared_ptr<Core>& c, const LeaseKey& k, const LeaseOptions& options)
      : Tenure(c, k, options), floor(options.fence_floor), label(options.label) {}

  AcquireRequest request(std::string_view token = {}) const;
};

// A held lease whose deadline has passed is lost, though its phase stays: see Lease::State::loss.
enum class Phase : std::uint8_t { adopted, held, lost, released };

// "its deadline passed"
std::string_view how(LossCause) noexcept;

// A lease and its verbs, for those that own one: see Lease, whose words they are.
struct Lease::State {
  State(Tenure of, OwnerToken t, Phase p) : tenure(std::move(of)), token(std::move(t)), phase(p) {}

  Tenure tenure;
  OwnerToken token;
  Phase phase;
  bool loss_told : 1 {false};
  bool contended : 1 {false};        // it was waited for, so others may wait as well
  std::optional<LossCause> cause{};  // while held: what its deadline's passing will have been
  Deadline acquired{}, deadline{Deadline::min()};
  FencingToken fence{0};  // 0: none
  // What few leases have: there may be very many of them.
  struct Aside {
    Error error{};            // without a code: none
    Deadline doubts_until{};  // until then, what was asked for it and not answered may still be carried out
    std::string place{};      // and bring this back: see Doubt::place
  };
  std::unique_ptr<Aside> aside{};

  Core& core() const noexcept { return *tenure.core; }
  Deadline now() const noexcept { return core().clock.now(); }
  bool held() const noexcept { return phase == Phase::held && !tenure.in_forked_child() && now() < deadline; }
  std::optional<LossCause> loss() const noexcept;
  RenewOutcome renew() noexcept;
  ReleaseOutcome release() noexcept;
  void abandon() noexcept;
  const Error& error() const noexcept;
  void count_from(Deadline counted_from) noexcept;

 private:
  void lose(LossCause) noexcept;
  void remember(Error) noexcept;
  void explain(std::string_view why) noexcept;
  const Error* last_error() const noexcept { return aside && aside->error.code ? &aside->error : nullptr; }
  void orphan(Deadline spent_by, std::string_view place) noexcept;
};

struct Claim::State {
  Wish wish;
  OwnerToken token;
  std::unique_ptr<Doubt> doubt;
  Error error;

  // Ends the doubt if nothing is left.
  Released withdraw(const Limits&);
  // The request is no longer wanted, and nobody waits for what becomes of it.
  void orphan() noexcept;
};

// Of a withdrawal: the doubt is over.
constexpr bool nothing_left(ReleaseOutcome outcome) noexcept {
  return outcome == ReleaseOutcome::released || outcome == ReleaseOutcome::not_held;
}

// What was asked for a lease and has not been answered, although something later was.
struct Unanswered {
  Deadline until{Deadline::min()};  // it may still be carried out until then; min: there is none
  std::string_view place{};         // see Doubt::place
};

struct LeaseMaker {
  using State = Lease::State;
  static const std::shared_ptr<Core>& core(const Client& client) noexcept { return client.state_->core; }
  // Null if it was moved from.
  static std::unique_ptr<State> take(Lease& lease) noexcept { return std::move(lease.state_); }
  static Lease lease(std::unique_ptr<State> state) noexcept { return Lease(std::move(state)); }
  static Lease adopted(Tenure, const OwnerToken&);

  // One try with a fresh token.
  static AcquireResult acquire(const Wish&, const Limits&);
  static AcquireResult retry(Claim, const Limits&);
  static ReleaseOutcome withdraw(Claim&, const Limits&);
  static Claim claim(const Wish&, const OwnerToken&, Doubtful);
  // A lease, unless its time is over already.
  static AcquireResult hold(const Wish&, const OwnerToken&, const Granted&, Deadline begun, const std::stop_token&,
                            const Unanswered& = {}, bool contended = false);
  // Withdraws it once more when it is spent, unless it was when the last request left, at `sent`.
  static void clean_up(const Wish&, const OwnerToken&, const Unanswered&, Deadline sent) noexcept;

 private:
  static AcquireResult settle(const Wish&, const OwnerToken&, Acquisition, Deadline begun, const Limits&,
                              const Unanswered& = {});
  static AcquireResult too_late(const Wish&, const OwnerToken&, const std::stop_token&);
};

}  // namespace v0
}  // namespace redlease
