#include <chrono>
#include <string>
#include <utility>

#include "concat.hpp"
#include "core.hpp"
#include "helper_names.hpp"
#include "redlease/lease.hpp"

namespace redlease {
inline namespace v0 {

namespace {

// A grant that came when its time was over, so that it counts as doubtful: it can only be taken back.
class LateGrant final : public Doubt {
 public:
  LateGrant(Tenure tenure, const OwnerToken& token) : tenure_(std::move(tenure)), token_(token) {}
  bool can_retry() noexcept override { return false; }
  Acquisition retry(const AcquireRequest&, const Limits&) override {
    return Error{Errc::timed_out, "the lease was granted too late to be of use"};
  }
  Released withdraw(const Limits& limits) override {
    return tenure_.core->store->release(tenure_.full_key(), token_.str(), limits);
  }
  void abandon() noexcept override {}

 private:
  Tenure tenure_;
  OwnerToken token_;
};

}  // namespace

AcquireResult LeaseMaker::acquire(const Wish& wish, const Limits& limits) {
  const OwnerToken token = OwnerToken::generate();
  const Deadline begun = wish.core->told_at();
  try {
    return settle(wish, token, wish.core->store->acquire(wish.request(token.str()), limits), begun, limits);
  } catch (...) {
    // Out of memory, or of threads: nobody knows how far it got.
    (void)wish.core->keeper.get().withdraw(wish.orphan(token, Deadline::max()));
    throw;
  }
}

AcquireResult LeaseMaker::hold(const Wish& wish, const OwnerToken& token, const Granted& granted, Deadline begun,
                               const std::stop_token& stop, const Unanswered& unanswered, bool contended) {
  const Core& core = *wish.core;
  auto state = std::make_unique<Lease::State>(wish, token, Phase::held);
  state->acquired = granted.counted_from;
  state->fence = granted.fence;
  if (unanswered.until > LeaseClock::now()) {
    state->aside = std::make_unique<Lease::State::Aside>(
        Lease::State::Aside{.doubts_until = unanswered.until, .place = std::string(unanswered.place)});
  }
  state->contended = contended;
  state->count_from(granted.counted_from);
  const Deadline now = core.clock.now();
  if (now >= state->deadline) {
    clean_up(wish, token, unanswered, begun);
    return too_late(wish, token, stop);
  }
  core.tell(&Observer::acquired, {.key = wish.key.str(), .elapsed = now - begun});
  return Lease(std::move(state));
}

AcquireResult LeaseMaker::settle(const Wish& wish, const OwnerToken& token, Acquisition acquisition, Deadline begun,
                                 const Limits& limits, const Unanswered& unanswered) {
  if (const auto* granted = std::get_if<Granted>(&acquisition)) {
    return hold(wish, token, *granted, begun, limits.stop, unanswered);
  }
  const Core& core = *wish.core;
  Event event{.key = wish.key.str(), .elapsed = core.told_at() - begun};
  if (auto* busy = std::get_if<Busy>(&acquisition)) {
    clean_up(wish, token, unanswered, begun);
    core.tell(&Observer::busy, event);
    return std::move(*busy);
  }
  if (auto* doubtful = std::get_if<Doubtful>(&acquisition)) {
    event.error = &doubtful->error;
    core.tell(&Observer::unknown, event);
    return claim(wish, token, std::move(*doubtful));
  }
  auto& error = std::get<Error>(acquisition);
  event.error = &error;
  core.tell(&Observer::unavailable, event);
  return Unavailable{std::move(error)};
}

void LeaseMaker::clean_up(const Wish& wish, const OwnerToken& token, const Unanswered& unanswered,
                          Deadline sent) noexcept {
  if (unanswered.until <= sent) return;
  try {
    (void)wish.core->keeper.get().withdraw(wish.orphan(token, unanswered.until, unanswered.place));
  } catch (...) {
    // Out of memory: the ttl will have to do.
  }
}

// The process stood still between the request and its answer, or the answer took that long.
AcquireResult LeaseMaker::too_late(const Wish& wish, const OwnerToken& token, const std::stop_token& stop) {
  Error error{Errc::timed_out,
              concat({"acquire ", quoted(wish.key.str()), " at ", wish.core->store->server(),
                      ": the lease was granted, but its time was over when the answer was read; it "})};
  Claim late = claim(wish, token, {std::make_unique<LateGrant>(wish, token), error});
  if (nothing_left(withdraw(late, {deadline_in(wish.op_timeout), stop}))) {
    error.detail += "was given back. Was this process paused?";
    wish.core->tell(&Observer::unavailable, {.key = wish.key.str(), .error = &error});
    return Unavailable{std::move(error)};
  }
  late.state_->error.code = Errc::unknown_outcome;
  late.state_->error.detail += "could not be given back and stands until its ttl. Was this process paused?";
  wish.core->tell(&Observer::unknown, {.key = wish.key.str(), .error = &late.state_->error});
  return late;
}

std::optional<Lease> AcquireResult::lease() && {
  if (Lease* lease = std::get_if<Lease>(&v_)) return std::move(*lease);
  return std::nullopt;
}

std::optional<Claim> AcquireResult::claim() && {
  if (Claim* claim = std::get_if<Claim>(&v_)) return std::move(*claim);
  return std::nullopt;
}

}  // namespace v0
}  // namespace redlease
