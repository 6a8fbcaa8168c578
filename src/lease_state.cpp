// The verbs of a lease.
#include <algorithm>
#include <utility>

#include "concat.hpp"
#include "core.hpp"
#include "helper_names.hpp"
#include "redlease/lease.hpp"

namespace redlease {
inline namespace v0 {

std::string_view how(LossCause cause) noexcept {
  switch (cause) {
    case LossCause::deadline: return "its deadline passed";
    case LossCause::gone: return "the server no longer has it";
    case LossCause::taken: return "another holds it";
    case LossCause::max_hold: return "it was held for as long as max_hold allows";
  }
  return "?";
}

void Lease::State::count_from(Deadline counted_from) noexcept {
  deadline = deadline_after(counted_from, tenure.ttl - core().margin(tenure.ttl));
  phase = Phase::held;
}

std::optional<LossCause> Lease::State::loss() const noexcept {
  if (tenure.in_forked_child()) return std::nullopt;
  if (phase != Phase::held) return cause;
  if (now() < deadline) return std::nullopt;
  return cause.value_or(LossCause::deadline);
}

void Lease::State::lose(LossCause why) noexcept {
  const Deadline at = std::min(now(), deadline);
  const bool was_held = phase == Phase::held;  // what was only adopted was never held here
  phase = Phase::lost;
  cause = why;
  if (was_held && !loss_told)
    core().tell(&Observer::lost, {.key = tenure.key.str(), .held = at - acquired, .loss = why});
}

void Lease::State::remember(Error error) noexcept {
  if (aside) aside->error = {};
  if (!error.code) return;
  try {
    if (!aside) aside = std::make_unique<Aside>();
    aside->error = std::move(error);
  } catch (const std::bad_alloc&) {
    // Nothing to tell it with.
  }
}

void Lease::State::explain(std::string_view why) noexcept {
  try {
    remember({Errc::lost, concat({"lease ", quoted(tenure.key.str()), " at ", core().store->server(), ": ", why})});
  } catch (const std::bad_alloc&) {
    remember({});
  }
}

// It may still stand on the server: taken back in the background.
void Lease::State::orphan(Deadline spent_by, std::string_view place) noexcept {
  try {
    (void)core().keeper.get().withdraw(tenure.orphan(token, spent_by, place));
  } catch (...) {
    // Out of memory: the ttl will have to do.
  }
}

const Error& Lease::State::error() const noexcept {
  static const Error& none = *new Error;
  return aside ? aside->error : none;
}

RenewOutcome Lease::State::renew() noexcept {
  if (tenure.in_forked_child()) return RenewOutcome::lost;
  if (phase != Phase::held && phase != Phase::adopted) return RenewOutcome::lost;
  const bool adopted = phase == Phase::adopted;
  const Deadline begun = now();
  const Deadline old_deadline = adopted ? Deadline::max() : deadline;
  if (begun >= old_deadline) {
    explain("its deadline had passed, so it was not renewed");
    return RenewOutcome::lost;
  }
  Renewal renewal;
  try {
    // A renewal that would end after the deadline could change nothing any more.
    const auto limit = std::min<LeaseClock::duration>(tenure.op_timeout, old_deadline - begun);
    const Limits limits{deadline_in(limit), {}};
    LeaseStore& store = *core().store;
    renewal = adopted ? store.adopt(tenure.full_key(), token.str(), tenure.ttl, limits)
                      : store.renew(tenure.full_key(), token.str(), tenure.ttl, limits);
  } catch (...) {
    renewal = {RenewOutcome::unknown, {}, {}, {}, {Errc::unknown_outcome, {}}};  // out of memory somewhere on the way
  }
  const Deadline answered = now();
  remember(std::move(renewal.error));
  Event event{.key = tenure.key.str(), .elapsed = answered - begun, .error = last_error()};
  switch (renewal.outcome) {
    case RenewOutcome::renewed:
      if (answered >= old_deadline) {  // nobody is told "yours" again who may have been told "lost"
        explain("it was renewed, but the answer was read after the deadline");
        return RenewOutcome::lost;
      }
      if (adopted) {
        acquired = renewal.counted_from;
        fence = renewal.fence.value_or(FencingToken{0});
      }
      count_from(renewal.counted_from);
      if (answered >= deadline) {
        explain("it was renewed, but the new deadline has passed already");
        return RenewOutcome::lost;
      }
      event.error = nullptr;
      event.slack = adopted ? LeaseClock::duration::zero() : old_deadline - answered;
      core().tell(&Observer::renewed, event);
      return RenewOutcome::renewed;
    case RenewOutcome::lost:
      lose(answered >= old_deadline ? LossCause::deadline : renewal.cause.value_or(LossCause::gone));
      explain(how(*cause));
      return RenewOutcome::lost;
    default: core().tell(&Observer::renew_failed, event); return renewal.outcome;
  }
}

ReleaseOutcome Lease::State::release() noexcept {
  if (tenure.in_forked_child()) return ReleaseOutcome::not_held;
  if (phase != Phase::held && phase != Phase::adopted) return ReleaseOutcome::not_held;
  const Deadline begun = now();
  const bool was_held = phase == Phase::held;
  const bool too_late = was_held && begun >= deadline;
  if (too_late) {
    lose(*loss());
  } else {
    phase = Phase::released;
    cause.reset();
  }
  // Compared with when the release left: it may have overtaken what is spent by the time of its answer.
  const bool late_comers = aside && LeaseClock::now() < aside->doubts_until;
  Released released;
  try {
    const Limits limits{deadline_in(tenure.op_timeout), {}};
    LeaseStore& store = *core().store;
    released = contended ? store.hand_over(tenure.full_key(), token.str(), limits)
                         : store.release(tenure.full_key(), token.str(), limits);
  } catch (...) {
    released = {ReleaseOutcome::unknown, {}, {Errc::unknown_outcome, {}}};
  }
  const Deadline answered = core().told_at();
  if (late_comers || released.outcome == ReleaseOutcome::unknown || released.outcome == ReleaseOutcome::unavailable) {
    if (late_comers) {
      orphan(aside->doubts_until, aside->place);
    } else {
      orphan(Deadline::min(), {});
    }
  }
  remember(std::move(released.error));
  Event event{.key = tenure.key.str(), .elapsed = answered - begun, .error = last_error()};
  if (was_held) event.held = std::min(begun, deadline) - acquired;
  if (too_late) event.loss = cause;
  if (released.outcome == ReleaseOutcome::released) {
    core().tell(&Observer::released, event);
  } else {
    if (released.outcome == ReleaseOutcome::not_held && !too_late) cause = released.cause;
    event.loss = cause;
    core().tell(&Observer::release_failed, event);
  }
  return too_late ? ReleaseOutcome::not_held : released.outcome;
}

void Lease::State::abandon() noexcept {
  if (tenure.in_forked_child()) return;
  const Deadline at = now();
  const bool was_held = phase == Phase::held;
  if (was_held && at >= deadline) lose(*loss());
  phase = Phase::released;
  if (was_held && at < deadline) core().tell(&Observer::abandoned, {.key = tenure.key.str(), .held = at - acquired});
}

}  // namespace v0
}  // namespace redlease
