#include "wait.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "concat.hpp"
#include "helper_names.hpp"

namespace redlease {
inline namespace v0 {

namespace {

// How long a waiter that gives up waits to hear that it has left.
constexpr Millis farewell{25};

// Whether trying again may help.
bool may_pass(const Error& error) {
  for (const Errc final : {Errc::denied, Errc::not_a_lease, Errc::unsupported, Errc::server_error, Errc::tls_failed}) {
    if (error.code == final) return false;
  }
  return true;
}

}  // namespace

Wait::Wait(Wish wish, Millis limit, std::stop_token stop)
    : wish_(std::move(wish)),
      stop_(std::move(stop)),
      begun_(now()),
      give_up_(deadline_after(begun_, limit)),
      seat_(wish_.core->store->seat(wish_.request())),
      plan_(terms()) {
  wish_.core->tell(&Observer::waiting, {.key = wish_.key.str()});
}

Wait::~Wait() {
  wish_.core->tell(&Observer::waited, {.key = wish_.key.str(), .elapsed = now() - begun_, .attempts = attempts_});
}

WaitPlan::Terms Wait::terms() const noexcept {
  return {.start = begun_,
          .give_up = give_up_,
          .ttl = wish_.ttl,
          .margin = wish_.core->margin(wish_.ttl),
          .drift = wish_.core->drift,
          .queue = seat_->has_queue(),
          .inbox = seat_->has_inbox(),
          .seed = std::hash<std::string_view>{}(seat_->token().str())};
}

AcquireResult Wait::run() try {
  while (!stop_.stop_requested()) {
    const WaitPlan::Next next = plan_.next(now());
    std::optional<AcquireResult> result;
    switch (next.step) {
      case WaitPlan::Step::ask: result = ask(next.how); break;
      case WaitPlan::Step::subscribe: subscribe(); break;
      case WaitPlan::Step::listen: result = listen(next.until); break;
      case WaitPlan::Step::give_up: return end(false);
    }
    if (result) return *std::move(result);
  }
  return end(true);
} catch (...) {
  // Out of memory, or of threads: nobody knows how far it got.
  (void)wish_.core->keeper.get().withdraw(wish_.orphan(seat_->token(), Deadline::max(), seat_->place()));
  throw;
}

std::optional<AcquireResult> Wait::ask(Ask how) {
  const Deadline begun = now();
  // The first question always gets its whole op_timeout; the later ones end with the wait.
  const LeaseClock::duration whole = wish_.op_timeout;
  const auto limit = attempts_ == 0 ? whole : std::min(whole, give_up_ - begun);
  if (limit <= LeaseClock::duration::zero()) return end(false);  // woken too late for another
  ++attempts_;
  return saw(seat_->ask(how, plan_.lifetime(), {deadline_in(limit), stop_}), begun, limit < whole);
}

std::optional<AcquireResult> Wait::saw(Seat::Answer answer, Deadline begun, bool cut_short) {
  doubt_.reset();
  if (const auto* grant = std::get_if<Granted>(&answer)) return granted(*grant, begun);
  if (auto* queued = std::get_if<Seat::Queued>(&answer)) {
    tell(&Observer::busy, begun);
    plan_.saw_queued(now(), queued->place);
    last_.emplace(std::move(queued->busy));
  } else if (auto* busy = std::get_if<Busy>(&answer)) {
    tell(&Observer::busy, begun);
    plan_.saw_busy(now(), busy->remaining);
    last_.emplace(std::move(*busy));
  } else if (auto* in_doubt = std::get_if<Seat::InDoubt>(&answer)) {
    tell(&Observer::unknown, begun, &in_doubt->error);
    plan_.saw_trouble(now());
    doubt_.emplace(std::move(in_doubt->error));
  } else {
    auto& error = std::get<Error>(answer);
    tell(&Observer::unavailable, begun, &error);
    plan_.saw_trouble(now());
    const bool final = !may_pass(error);
    // That the wait ended before this try had begun in earnest is no news of the lease.
    const bool not_begun = error.code == Errc::timed_out || error.code == Errc::too_many_connections;
    if (!(cut_short && last_ && not_begun)) last_.emplace(Unavailable{std::move(error)});
    if (final) return end(false);
  }
  return std::nullopt;
}

void Wait::subscribe() {
  const auto limit = std::min<LeaseClock::duration>(wish_.op_timeout, give_up_ - now());
  switch (seat_->subscribe({deadline_in(limit), stop_})) {
    case Seat::Subscribed::yes: return plan_.saw_inbox(now());
    case Seat::Subscribed::no: return plan_.saw_no_inbox(now());
    case Seat::Subscribed::refused: return plan_.saw_inbox_refused(now());
  }
}

std::optional<AcquireResult> Wait::listen(Deadline until) {
  auto left = until - now();
  // In slices, since the clock may be one that a test moves.
  if (&clock() != &Clock::real()) left = std::min<LeaseClock::duration>(left, Millis(5));
  const Seat::Heard heard = seat_->listen({deadline_in(left), stop_});
  const Deadline at = now();
  if (const auto* silence = std::get_if<Seat::Silence>(&heard)) {
    if (*silence == Seat::Silence::inbox_lost) plan_.saw_no_inbox(at);
    return std::nullopt;
  }
  const auto& grant = std::get<Seat::Grant>(heard);
  if (grant.fence == FencingToken{}) {
    plan_.saw_hint(at);
    return std::nullopt;
  }
  const std::optional<Deadline> from = plan_.saw_grant(at, grant.server_time);
  if (!from) return std::nullopt;
  return granted({grant.fence, *from}, at);
}

AcquireResult Wait::granted(const Granted& grant, Deadline begun) {
  return LeaseMaker::hold(wish_, seat_->token(), grant, begun, stop_, {seat_->spent_by(), seat_->place()},
                          last_.has_value());
}

// The last truth.
AcquireResult Wait::end(bool stopped) {
  const OwnerToken& token = seat_->token();
  const Deadline begun = LeaseClock::now();
  // What was not answered may have got a place, or the lease, after the latest answer.
  if (!doubt_ && (plan_.in_queue() || seat_->spent_by() != Deadline::min())) {
    Released left = seat_->leave({deadline_in(std::min<Millis>(wish_.op_timeout, farewell)), {}});
    if (!nothing_left(left.outcome)) doubt_.emplace(std::move(left.error));
  }
  if (doubt_) return LeaseMaker::claim(wish_, token, {seat_->doubt(), *std::move(doubt_)});
  LeaseMaker::clean_up(wish_, token, {seat_->spent_by(), seat_->place()}, begun);
  if (!stopped) return *std::move(last_);
  return Unavailable{{Errc::cancelled, concat({"acquire ", quoted(wish_.key.str()), " at ", wish_.core->store->server(),
                                               ": a stop was requested; nothing of it is on the server"})}};
}

void Wait::tell(void (Observer::*method)(const Event&) noexcept, Deadline begun, const Error* error) const noexcept {
  wish_.core->tell(method, {.key = wish_.key.str(), .elapsed = now() - begun, .error = error});
}

}  // namespace v0
}  // namespace redlease
