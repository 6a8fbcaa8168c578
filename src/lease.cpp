#include "redlease/lease.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core.hpp"
#include "helper_names.hpp"

namespace redlease {
inline namespace v0 {

void Lease::State::count_from(Deadline counted_from) noexcept {
  deadline = std::min(deadline_after(counted_from, wish.ttl - core().margin(wish.ttl)), cap);
  phase = Phase::held;
}

std::optional<LossCause> Lease::State::loss() const noexcept {
  if (phase == Phase::held && core().clock.now() >= deadline) {
    return deadline == cap ? LossCause::max_hold : LossCause::deadline;
  }
  return cause;
}

void Lease::State::lose(LossCause why) noexcept {
  const Deadline now = core().clock.now();
  phase = Phase::lost;
  cause = why;
  core().tell(&Observer::lost, {.key = wish.key.str(), .held = std::min(now, deadline) - acquired, .loss = why});
}

std::string_view how(LossCause cause) noexcept {
  switch (cause) {
    case LossCause::deadline: return "its deadline passed";
    case LossCause::gone: return "the server no longer has it";
    case LossCause::taken: return "another holds it";
    case LossCause::max_hold: return "it was held for as long as max_hold allows";
  }
  return "?";
}

void Lease::State::explain(std::string_view why) noexcept {
  last_error.code = Errc::lost;
  try {
    last_error.detail =
        "lease " + quoted(wish.key.str()) + " at " + std::string(core().store->server()) + ": " + std::string(why);
  } catch (...) {
    last_error.detail.clear();
  }
}

Lease LeaseMaker::adopted(Wish wish, const OwnerToken& token) {
  return Lease(std::make_unique<Lease::State>(std::move(wish), token, Phase::adopted));
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
  if (state_->wish.in_forked_child()) {
    // The parent's, whose locks may have been held when it forked: leaked.
    (void)state_.release();
    return;
  }
  if (state_->phase == Phase::held) (void)release();
}

bool Lease::held() const noexcept {
  return state_ && state_->phase == Phase::held && !state_->wish.in_forked_child() &&
         state_->core().clock.now() < state_->deadline;
}

Deadline Lease::deadline() const noexcept { return state_->deadline; }

Millis Lease::remaining() const noexcept {
  if (!held()) return Millis(0);
  return std::max(Millis(0), std::chrono::floor<Millis>(state_->deadline - state_->core().clock.now()));
}

const LeaseKey& Lease::key() const noexcept { return state_->wish.key; }
const OwnerToken& Lease::token() const noexcept { return state_->token; }

std::optional<FencingToken> Lease::fencing_token() const noexcept { return state_ ? state_->fence : std::nullopt; }

std::optional<LossCause> Lease::loss() const noexcept {
  return state_ && !state_->wish.in_forked_child() ? state_->loss() : std::nullopt;
}

const Error& Lease::last_error() const noexcept {
  static const Error& none = *new Error;
  return state_ ? state_->last_error : none;
}

RenewOutcome Lease::renew() noexcept {
  if (!state_ || state_->wish.in_forked_child()) return RenewOutcome::lost;
  State& s = *state_;
  if (s.phase != Phase::held && s.phase != Phase::adopted) return RenewOutcome::lost;
  const bool adopted = s.phase == Phase::adopted;
  const Deadline begun = s.core().clock.now();
  const Deadline old_deadline = adopted ? Deadline::max() : s.deadline;
  if (begun >= old_deadline) {
    s.explain("its deadline had passed, so it was not renewed");
    return RenewOutcome::lost;
  }
  Renewal renewal;
  try {
    // A renewal that would end after the deadline could change nothing any more.
    const auto limit = std::min<LeaseClock::duration>(s.wish.op_timeout, old_deadline - begun);
    const Limits limits{deadline_in(limit), {}};
    LeaseStore& store = *s.core().store;
    renewal = adopted ? store.adopt(s.wish.full_key, s.token.str(), s.wish.ttl, limits)
                      : store.renew(s.wish.full_key, s.token.str(), s.wish.ttl, limits);
  } catch (...) {
    renewal = {RenewOutcome::unknown, {}, {}, {}, {Errc::unknown_outcome, {}}};  // out of memory somewhere on the way
  }
  const Deadline now = s.core().clock.now();
  Event event{.key = s.wish.key.str(), .elapsed = now - begun, .error = &s.last_error};
  s.last_error = std::move(renewal.error);
  switch (renewal.outcome) {
    case RenewOutcome::renewed:
      if (now >= old_deadline) {  // nobody is told "yours" again who may have been told "lost"
        s.explain("it was renewed, but the answer was read after the deadline");
        return RenewOutcome::lost;
      }
      if (adopted) {
        s.acquired = renewal.counted_from;
        s.fence = renewal.fence;
      }
      s.count_from(renewal.counted_from);
      if (now >= s.deadline) {
        s.explain("it was renewed, but the new deadline has passed already");
        return RenewOutcome::lost;
      }
      event.error = nullptr;
      event.slack = adopted ? LeaseClock::duration::zero() : old_deadline - now;
      s.core().tell(&Observer::renewed, event);
      return RenewOutcome::renewed;
    case RenewOutcome::lost:
      s.lose(now >= old_deadline ? LossCause::deadline : renewal.cause.value_or(LossCause::gone));
      s.explain(how(*s.cause));
      return RenewOutcome::lost;
    default: s.core().tell(&Observer::renew_failed, event); return renewal.outcome;
  }
}

ReleaseOutcome Lease::release() noexcept {
  if (!state_ || state_->wish.in_forked_child()) return ReleaseOutcome::not_held;
  State& s = *state_;
  if (s.phase != Phase::held && s.phase != Phase::adopted) return ReleaseOutcome::not_held;
  const Deadline begun = s.core().clock.now();
  const bool was_held = s.phase == Phase::held;
  const bool too_late = was_held && begun >= s.deadline;
  if (too_late) {
    s.lose(*s.loss());
  } else {
    s.phase = Phase::released;
  }
  Released released;
  try {
    const Limits limits{deadline_in(s.wish.op_timeout), {}};
    released = s.core().store->release(s.wish.full_key, s.token.str(), limits);
  } catch (...) {
    released = {ReleaseOutcome::unknown, {}, {Errc::unknown_outcome, {}}};
  }
  s.last_error = std::move(released.error);
  const Deadline now = s.core().clock.now();
  Event event{.key = s.wish.key.str(), .elapsed = now - begun};
  if (was_held) event.held = std::min(begun, s.deadline) - s.acquired;
  if (s.last_error.code) event.error = &s.last_error;
  if (released.outcome == ReleaseOutcome::released) {
    s.core().tell(&Observer::released, event);
  } else {
    if (released.outcome == ReleaseOutcome::not_held && !too_late) s.cause = released.cause;
    event.loss = s.cause;
    s.core().tell(&Observer::release_failed, event);
  }
  return too_late ? ReleaseOutcome::not_held : released.outcome;
}

void Lease::abandon() noexcept {
  if (state_ && !state_->wish.in_forked_child()) state_->phase = Phase::released;
}

}  // namespace v0
}  // namespace redlease
