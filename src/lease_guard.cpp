#include "redlease/lease_guard.hpp"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "core.hpp"
#include "helper_names.hpp"

namespace redlease {
inline namespace v0 {

namespace {

// Throws AcquireError for everything but a Lease.
Lease lease_of(AcquireResult result, const Client& client, const LeaseKey& key) {
  return std::move(result).match(
      [](Lease lease) { return lease; },
      [&](const Busy& busy) -> Lease {
        std::string detail = "lease " + quoted(key.str()) + " at ";
        detail += LeaseMaker::core(client)->store->server();
        detail += " is held by " + (busy.holder.empty() ? "another" : quoted(busy.holder));
        if (busy.remaining) detail += " for another " + std::to_string(busy.remaining->count()) + " ms unless renewed";
        throw AcquireError(AcquireOutcome::busy, {Errc::busy, std::move(detail)});
      },
      [](Claim claim) -> Lease {  // dropping the claim withdraws it
        throw AcquireError(AcquireOutcome::unknown, {Errc::unknown_outcome, claim.error().detail});
      },
      [](Unavailable unavailable) -> Lease {
        throw AcquireError(AcquireOutcome::unavailable, std::move(unavailable.error));
      });
}

LeaseLost lost(const LeaseKey& key, std::string_view why) {
  return LeaseLost(
      {Errc::lost, "lease " + quoted(key.str()) + " is no longer held: " + std::string(why) + ". Stop the work"});
}

}  // namespace

struct LeaseGuard::State {
  State(Lease l, const LeaseOptions& options)
      : lease(std::move(l)), on_lost(options.on_lost), stop_before(options.stop_before) {
    if (options.max_hold) {
      auto& held = LeaseMaker::state(lease);
      held.cap = deadline_after(held.acquired, *options.max_hold);
      held.deadline = std::min(held.deadline, held.cap);
    }
  }

  // Whoever asks first after a loss passes it on, once.
  void notice() {
    const auto loss = lease.loss();
    const bool soon = lease.held() && LeaseMaker::state(lease).core().clock.now() >= lease.deadline() - stop_before;
    if (!loss && !soon) return;
    stop.request_stop();
    if (loss && on_lost && !told.exchange(true)) on_lost(*loss);
  }

  Lease lease;
  std::function<void(LossCause)> on_lost;
  Millis stop_before;
  std::stop_source stop;
  std::atomic<bool> told{false};
  bool released{false};
};

LeaseGuard::LeaseGuard(Client& client, const LeaseKey& key, const LeaseOptions& options, std::stop_token stop)
    : state_(std::make_unique<State>(lease_of(client.acquire(key, options, std::move(stop)), client, key), options)) {}

LeaseGuard::LeaseGuard(TryOnce, Client& client, const LeaseKey& key, const LeaseOptions& options) {
  AcquireResult result = client.try_acquire(key, options);
  if (result.outcome() == AcquireOutcome::busy) return;
  state_ = std::make_unique<State>(lease_of(std::move(result), client, key), options);
}

LeaseGuard::LeaseGuard(Client& client, Lease lease, const LeaseOptions& options) {
  if (LeaseMaker::moved_from(lease)) throw LeaseLost({Errc::lost, "there is no lease to take over: it was moved from"});
  auto& taken = LeaseMaker::state(lease);
  const Wish wish(LeaseMaker::core(client), taken.wish.key, options);  // judges the options
  taken.wish.ttl = wish.ttl;
  taken.wish.op_timeout = wish.op_timeout;
  if (!lease.held()) {
    const RenewOutcome renewed = lease.renew();
    if (renewed == RenewOutcome::lost) throw lost(lease.key(), how(lease.loss().value_or(LossCause::gone)));
    if (renewed != RenewOutcome::renewed) throw LeaseLost({Errc::lost, lease.last_error().detail});
  }
  state_ = std::make_unique<State>(std::move(lease), options);
}

LeaseGuard::LeaseGuard(LeaseGuard&&) noexcept = default;
LeaseGuard& LeaseGuard::operator=(LeaseGuard&&) noexcept = default;
LeaseGuard::~LeaseGuard() = default;

bool LeaseGuard::owns() const noexcept { return state_ && !state_->released; }

bool LeaseGuard::held() const noexcept {
  if (!owns()) return false;
  try {
    state_->notice();
  } catch (...) {
    // Whoever asks is told by the answer; an exception of on_lost is nobody's here.
  }
  return state_->lease.held();
}

void LeaseGuard::ensure_held() const {
  if (held()) return;
  if (!state_) throw LeaseLost({Errc::lost, "this guard never held a lease"});
  if (state_->released) throw lost(key(), "it was released");
  throw lost(key(), how(loss().value_or(LossCause::deadline)));
}

std::stop_token LeaseGuard::stop_token() const noexcept {
  if (!state_) return {};
  (void)held();
  return state_->stop.get_token();
}

FencingToken LeaseGuard::fencing_token() const {
  const auto fence = state_ ? state_->lease.fencing_token() : std::nullopt;
  if (!fence) throw LeaseLost({Errc::lost, "this guard never held a lease, so there is no fencing token"});
  return *fence;
}

Deadline LeaseGuard::deadline() const noexcept { return state_ ? state_->lease.deadline() : Deadline::min(); }
const LeaseKey& LeaseGuard::key() const noexcept { return state_->lease.key(); }
const OwnerToken& LeaseGuard::token() const noexcept { return state_->lease.token(); }
std::optional<LossCause> LeaseGuard::loss() const noexcept { return state_ ? state_->lease.loss() : std::nullopt; }

ReleaseOutcome LeaseGuard::release() noexcept {
  if (!owns()) return ReleaseOutcome::not_held;
  state_->released = true;
  return state_->lease.release();
}

const Error& LeaseGuard::last_error() const noexcept {
  static const Error& none = *new Error;
  return state_ ? state_->lease.last_error() : none;
}

}  // namespace v0
}  // namespace redlease
