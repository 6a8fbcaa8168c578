#include "redlease/lease_guard.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "concat.hpp"
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
        std::string detail = concat({"lease ", quoted(key.str()), " at ", LeaseMaker::core(client)->store->server(),
                                     " is held by ", busy.holder.empty() ? "another" : quoted(busy.holder)});
        if (busy.remaining) {
          detail += concat({" for another ", std::to_string(busy.remaining->count()), " ms unless renewed"});
        }
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
  return LeaseLost({Errc::lost, concat({"lease ", quoted(key.str()), " is no longer held: ", why, ". Stop the work"})});
}

}  // namespace

struct LeaseGuard::State {
  // Throws nothing between taking it and being able to give it back.
  State(Lease& of, const LeaseOptions& options, std::shared_ptr<LossCall> call)
      : lease(std::move(*LeaseMaker::take(of))),
        kept(lease.tenure.full_key(), lease.token.str(), lease.acquired, plan(options), std::move(call)) {
    try {
      keeper().keep(kept);
    } catch (...) {
      (void)lease.release();
      throw;
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { (void)release(); }

  RenewalPlan plan(const LeaseOptions& options) const noexcept {
    const KeepTerms terms{.ttl = options.ttl,
                          .margin = lease.core().margin(options.ttl),
                          .op_timeout = lease.tenure.op_timeout,
                          .stop_before = options.stop_before,
                          .cap = options.max_hold ? deadline_after(lease.acquired, *options.max_hold) : Deadline::max(),
                          .renew = options.renew};
    return {terms, lease.deadline, std::hash<std::string>{}(lease.token.str())};
  }

  Keeper& keeper() const { return lease.core().keeper.get(); }
  bool in_forked_child() const noexcept { return lease.tenure.in_forked_child(); }
  // What it is lost by once the deadline passes.
  LossCause end() const noexcept {
    return kept.deadline.load() == kept.plan.cap() ? LossCause::max_hold : LossCause::deadline;
  }

  bool held() noexcept {
    if (released || in_forked_child()) return false;
    const auto in_time = [this] { return lease.now() < kept.deadline.load() && !kept.loss.load(); };
    if (in_time()) return true;
    keeper().notice(kept);
    return in_time();
  }

  std::optional<LossCause> loss() const noexcept {
    if (released || in_forked_child()) return lease.loss();
    if (const auto told = kept.loss.load()) return told;
    return lease.now() < kept.deadline.load() ? std::nullopt : std::optional(end());
  }

  // From now on the lease is the holder's alone again, and knows what the Keeper knew.
  ReleaseOutcome release() noexcept {
    if (released || in_forked_child()) return ReleaseOutcome::not_held;
    released = true;
    keeper().let_go(kept);
    const auto loss = kept.loss.load();
    lease.deadline = kept.deadline;
    lease.cause = loss.value_or(end());
    lease.loss_told = loss.has_value();
    if (loss == LossCause::gone || loss == LossCause::taken) lease.phase = Phase::lost;
    return lease.release();
  }

  LeaseMaker::State lease;
  Kept kept;
  bool released{false};
};

LeaseGuard::LeaseGuard(Client& client, const LeaseKey& key, const LeaseOptions& options, std::stop_token stop)
    : state_(kept(lease_of(client.acquire(key, options, std::move(stop)), client, key), options)) {}

LeaseGuard::LeaseGuard(TryOnce, Client& client, const LeaseKey& key, const LeaseOptions& options) {
  AcquireResult result = client.try_acquire(key, options);
  if (result.outcome() == AcquireOutcome::busy) return;
  state_ = kept(lease_of(std::move(result), client, key), options);
}

LeaseGuard::LeaseGuard(Client& client, Lease lease, const LeaseOptions& options) {
  auto taken = LeaseMaker::take(lease);
  if (!taken) throw LeaseLost({Errc::lost, "there is no lease to take over: it was moved from"});
  try {
    taken->tenure = Tenure(LeaseMaker::core(client), taken->tenure.key, options);  // judges the options
  } catch (...) {
    lease = LeaseMaker::lease(std::move(taken));  // as it was, to be released on the way out
    throw;
  }
  lease = LeaseMaker::lease(std::move(taken));
  if (!lease.held()) {
    const RenewOutcome renewed = lease.renew();
    if (renewed == RenewOutcome::lost) throw lost(lease.key(), how(lease.loss().value_or(LossCause::gone)));
    if (renewed != RenewOutcome::renewed) throw LeaseLost({Errc::lost, lease.last_error().detail});
  }
  state_ = kept(std::move(lease), options);
}

std::unique_ptr<LeaseGuard::State> LeaseGuard::kept(Lease lease, const LeaseOptions& options) {
  return std::make_unique<State>(lease, options,
                                 options.on_lost ? std::make_shared<LossCall>(options.on_lost) : nullptr);
}

LeaseGuard::LeaseGuard(LeaseGuard&&) noexcept = default;

LeaseGuard& LeaseGuard::operator=(LeaseGuard&& other) noexcept {
  if (&other == this) return *this;
  const LeaseGuard before(std::move(*this));  // released on the way out
  state_ = std::move(other.state_);
  return *this;
}

LeaseGuard::~LeaseGuard() {
  if (state_ && state_->in_forked_child()) (void)state_.release();  // the parent's: leaked
}

bool LeaseGuard::owns() const noexcept { return state_ && !state_->released; }

bool LeaseGuard::held() const noexcept { return state_ && state_->held(); }

void LeaseGuard::ensure_held() const {
  if (held()) return;
  if (!state_) throw LeaseLost({Errc::lost, "this guard never held a lease"});
  if (state_->released) throw lost(key(), "it was released");
  throw lost(key(), how(loss().value_or(LossCause::deadline)));
}

std::stop_token LeaseGuard::stop_token() const noexcept {
  if (!state_ || state_->in_forked_child()) return {};
  state_->keeper().notice(state_->kept);
  return state_->keeper().stop_token(state_->kept);
}

FencingToken LeaseGuard::fencing_token() const {
  if (!state_ || state_->lease.fence == FencingToken{0}) {
    throw LeaseLost({Errc::lost, "this guard never held a lease, so there is no fencing token"});
  }
  return state_->lease.fence;
}

Deadline LeaseGuard::deadline() const noexcept { return state_ ? state_->kept.deadline.load() : Deadline::min(); }
const LeaseKey& LeaseGuard::key() const noexcept { return state_->lease.tenure.key; }
const OwnerToken& LeaseGuard::token() const noexcept { return state_->lease.token; }
std::optional<LossCause> LeaseGuard::loss() const noexcept { return state_ ? state_->loss() : std::nullopt; }
ReleaseOutcome LeaseGuard::release() noexcept { return state_ ? state_->release() : ReleaseOutcome::not_held; }

const Error& LeaseGuard::last_error() const noexcept {
  static const Error& none = *new Error;
  return state_ ? state_->lease.error() : none;
}

}  // namespace v0
}  // namespace redlease
