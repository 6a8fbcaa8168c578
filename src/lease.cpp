#include "redlease/lease.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core.hpp"

namespace redlease {
inline namespace v0 {

Lease LeaseMaker::adopted(Tenure tenure, const OwnerToken& token) {
  return Lease(std::make_unique<Lease::State>(std::move(tenure), token, Phase::adopted));
}

Lease::Lease(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Lease::Lease(Lease&&) noexcept = default;

Lease& Lease::operator=(Lease&& other) noexcept {
  if (&other == this) return *this;
  const Lease before(std::move(*this));  // released on the way out
  state_ = std::move(other.state_);
  return *this;
}

Lease::~Lease() {
  if (!state_) return;
  if (state_->tenure.in_forked_child()) {
    // The parent's, whose locks may have been held when it forked: leaked.
    (void)state_.release();
    return;
  }
  if (state_->phase == Phase::held) (void)release();
}

bool Lease::held() const noexcept { return state_ && state_->held(); }
Deadline Lease::deadline() const noexcept { return state_->deadline; }

Millis Lease::remaining() const noexcept {
  if (!held()) return Millis(0);
  return std::max(Millis(0), std::chrono::floor<Millis>(state_->deadline - state_->now()));
}

const LeaseKey& Lease::key() const noexcept { return state_->tenure.key; }
const OwnerToken& Lease::token() const noexcept { return state_->token; }

std::optional<FencingToken> Lease::fencing_token() const noexcept {
  return state_ && state_->fence != FencingToken{0} ? std::optional(state_->fence) : std::nullopt;
}

std::optional<LossCause> Lease::loss() const noexcept { return state_ ? state_->loss() : std::nullopt; }

const Error& Lease::last_error() const noexcept {
  static const Error& none = *new Error;
  return state_ ? state_->error() : none;
}

RenewOutcome Lease::renew() noexcept { return state_ ? state_->renew() : RenewOutcome::lost; }
ReleaseOutcome Lease::release() noexcept { return state_ ? state_->release() : ReleaseOutcome::not_held; }

void Lease::abandon() noexcept {
  if (state_) state_->abandon();
}

}  // namespace v0
}  // namespace redlease
