#include <string>
#include <utility>

#include "core.hpp"
#include "redlease/lease.hpp"

namespace redlease {
inline namespace v0 {

namespace {

// Whoever waited has asked more than once, on several connections maybe: none of the answers is the last word on all.
Unanswered unanswered(const Doubt& doubt) noexcept {
  return doubt.place().empty() ? Unanswered{} : Unanswered{doubt.spent_by(), doubt.place()};
}

}  // namespace

Claim LeaseMaker::claim(const Wish& wish, const OwnerToken& token, Doubtful doubtful) {
  return Claim(std::unique_ptr<Claim::State>(
      new Claim::State{wish, token, std::move(doubtful.doubt), std::move(doubtful.error)}));
}

AcquireResult LeaseMaker::retry(Claim claim, const Limits& limits) {
  if (!claim.state_ || !claim.state_->doubt || claim.state_->wish.in_forked_child()) {
    return Unavailable{{Errc::lost, "this claim is spent, or belongs to the parent of this process; nothing was sent"}};
  }
  Claim::State& s = *claim.state_;
  if (s.doubt->can_retry()) {
    const Deadline begun = s.wish.core->clock.now();
    const std::unique_ptr<Doubt> spent = std::move(s.doubt);  // whatever comes of it, this claim is over
    Acquisition answer = spent->retry(s.wish.request(s.token.str()), limits);
    return settle(s.wish, s.token, std::move(answer), begun, limits, unanswered(*spent));
  }
  Released withdrawn = s.withdraw(limits);
  if (nothing_left(withdrawn.outcome)) return acquire(s.wish, limits);
  s.error = std::move(withdrawn.error);
  s.error.code = Errc::unknown_outcome;
  return claim;
}

ReleaseOutcome LeaseMaker::withdraw(Claim& claim, const Limits& limits) {
  if (!claim.state_ || !claim.state_->doubt || claim.state_->wish.in_forked_child()) return ReleaseOutcome::not_held;
  return claim.state_->withdraw(limits).outcome;
}

Released Claim::State::withdraw(const Limits& limits) {
  const Unanswered others = unanswered(*doubt);
  const Deadline sent = LeaseClock::now();
  Released withdrawn = doubt->withdraw(limits);
  if (nothing_left(withdrawn.outcome)) {
    LeaseMaker::clean_up(wish, token, others, sent);
    doubt.reset();
  }
  return withdrawn;
}

Claim::Claim(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Claim::Claim(Claim&&) noexcept = default;

Claim& Claim::operator=(Claim&& other) noexcept {
  if (&other == this) return *this;
  const Claim before(std::move(*this));  // dropped on the way out
  state_ = std::move(other.state_);
  return *this;
}

Claim::~Claim() {
  if (!state_) return;
  if (state_->wish.in_forked_child()) {
    (void)state_.release();  // the parent's: leaked
  } else {
    state_->orphan();
  }
}

void Claim::State::orphan() noexcept {
  if (!doubt) return;
  try {
    Orphan left = wish.orphan(token, doubt->spent_by(), doubt->place());
    doubt.reset();  // sends the withdrawal behind the request, where that can be
    (void)wish.core->keeper.get().withdraw(std::move(left));
  } catch (...) {
    // Out of memory: the ttl will have to do.
  }
}

const OwnerToken& Claim::token() const noexcept { return state_->token; }
const Error& Claim::error() const noexcept { return state_->error; }

AcquireResult Claim::retry(Deadline deadline) && { return LeaseMaker::retry(std::move(*this), {deadline, {}}); }

ReleaseOutcome Claim::withdraw(Deadline deadline) && {
  Claim mine(std::move(*this));  // what is left of it when it is dropped is withdrawn in the background
  return LeaseMaker::withdraw(mine, {deadline, {}});
}

void Claim::abandon() && noexcept {
  if (state_ && state_->doubt && !state_->wish.in_forked_child()) {
    state_->doubt->abandon();
    state_->doubt.reset();
  }
}

}  // namespace v0
}  // namespace redlease
