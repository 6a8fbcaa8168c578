#include "redlease/plan/wait_plan.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace redlease {
inline namespace v0 {

namespace {

constexpr Millis settle{2};     // the server counts whole milliseconds, and a key is gone only after its last
constexpr Millis spread{10};    // so that those who wait for the same end do not come together
constexpr Millis in_turn{5};    // for each that is ahead, since the first ones may be dead; whoever asks, the first
constexpr Millis far_back{20};  // that lives gets it. And for each beyond so many:
constexpr LeaseClock::rep in_front{16};
constexpr int once_more{6};     // heartbeats until an inbox is tried for again that could not be had for one
constexpr Millis last_try{20};  // before the end: room for its answer, so that "busy" is known and not in doubt

LeaseClock::duration nanos(double count) noexcept {
  constexpr auto most = LeaseClock::duration::max();
  return count < static_cast<double>(most.count()) ? LeaseClock::duration(static_cast<LeaseClock::rep>(count)) : most;
}

}  // namespace

WaitPlan::WaitPlan(const Terms& terms) noexcept
    : terms_(terms),
      heartbeat_(std::clamp<Millis>(terms.ttl / 6, Millis(1'000), Millis(5'000))),
      random_(terms.seed),
      ask_at_(terms.start),
      inbox_(terms.inbox ? Inbox::up : Inbox::none),
      had_inbox_(terms.inbox) {}

Deadline WaitPlan::latest() const noexcept {
  return terms_.give_up == Deadline::max() ? terms_.give_up : deadline_after(terms_.give_up, -last_try);
}

bool WaitPlan::near_end(Deadline now) const noexcept { return deadline_after(now, settle) >= latest(); }

Ask WaitPlan::how() const noexcept {
  const bool worth_it = latest() > terms_.start;
  if (!terms_.queue || !worth_it) return Ask::once;
  if (!contended_ && !in_queue_) return inbox_ == Inbox::up ? Ask::queue : Ask::once;
  if (inbox_ == Inbox::refused) return Ask::reserve;
  return had_inbox_ ? Ask::queue : Ask::once;
}

WaitPlan::Next WaitPlan::next(Deadline now) const noexcept {
  if (over_) return {Step::give_up, {}, {}};
  if (!asked_) return {Step::ask, how(), {}};
  if (now >= terms_.give_up) return {Step::give_up, {}, {}};
  if (now >= latest()) return {Step::ask, Ask::last, {}};
  if (now >= subscribe_at_) return {Step::subscribe, {}, {}};
  if (now >= ask_at_) return {Step::ask, how(), {}};
  return {Step::listen, {}, std::min({ask_at_, subscribe_at_, latest()})};
}

void WaitPlan::saw_busy(Deadline now, std::optional<Millis> remaining) noexcept {
  asked_ = true;
  in_queue_ = false;
  over_ = near_end(now);
  const bool first = !contended_;
  contended_ = true;
  LeaseClock::duration pause = grown();
  if (remaining && *remaining < longest_interval) {
    pause = std::min<LeaseClock::duration>(pause, std::max(*remaining, Millis{0}) + settle + jitter(spread));
  }
  ask_at_ = deadline_after(now, pause);
  if (!first || !terms_.queue) return;
  // Now that another holds it, a place in the queue is worth an inbox.
  if (inbox_ == Inbox::none) subscribe_at_ = now;
  if (inbox_ != Inbox::none) ask_at_ = now;
}

void WaitPlan::saw_queued(Deadline now, const Place& place) noexcept {
  asked_ = contended_ = in_queue_ = true;
  if (inbox_ == Inbox::up && !place.heard) {
    // Its connection is gone and we have not seen it yet; or it is at another server, and so will the next one be.
    inbox_ = ++unheard_ < 2 ? Inbox::none : Inbox::refused;
    subscribe_at_ = inbox_ == Inbox::none ? now : Deadline::max();
    ask_at_ = now;
    told_.reset();
    return;
  }
  unheard_ = 0;
  told_ = Told{place.sent, place.server_time};
  LeaseClock::duration pause = LeaseClock::duration(heartbeat_) * 9 / 10 + jitter(heartbeat_ / 10);
  const auto no_later = [&](LeaseClock::duration than) { pause = std::min(pause, than); };
  const auto turns = static_cast<LeaseClock::rep>(std::min<std::size_t>(place.ahead, 10'000));
  if (place.remaining) {
    const auto near = std::min(turns, in_front);
    const auto turn = near * in_turn + (turns - near) * far_back;
    no_later(std::clamp(*place.remaining, Millis{0}, heartbeat_) + settle + turn + jitter(spread));
    if (*place.remaining <= Millis{0}) no_later(settle + jitter(spread));  // free, and too many dead were in front
  }
  // Nobody wakes us: a foreign holder does not know us, and a turn that is kept for us is not announced.
  if (place.foreign) no_later((turns + 1) * (Millis(20) + jitter(Millis(80))));
  if (inbox_ == Inbox::refused && place.ahead == 0) {
    no_later(grown());
  } else if (inbox_ != Inbox::none) {
    interval_ = first_interval;  // else it is how often an inbox is tried for
  }
  ask_at_ = deadline_after(now, pause);
}

void WaitPlan::saw_trouble(Deadline now) noexcept {
  asked_ = true;
  if (how() == Ask::queue || how() == Ask::reserve) in_queue_ = true;  // it may have been carried out
  over_ = near_end(now);
  told_.reset();
  ask_at_ = deadline_after(now, grown());
}

void WaitPlan::saw_inbox(Deadline now) noexcept {
  inbox_ = Inbox::up;
  had_inbox_ = true;
  no_inbox_since_.reset();
  told_.reset();  // what was told before may be of another server
  subscribe_at_ = Deadline::max();
  ask_at_ = now;
}

void WaitPlan::saw_no_inbox(Deadline now) noexcept {
  told_.reset();
  if (inbox_ == Inbox::refused) {
    if (subscribe_at_ != Deadline::max()) subscribe_at_ = deadline_after(now, heartbeat_ * once_more);
    return;
  }
  const bool lost = std::exchange(inbox_, Inbox::none) == Inbox::up;
  if (lost) {
    subscribe_at_ = now;
    return;
  }
  if (!no_inbox_since_) no_inbox_since_ = now;
  const bool for_long = now >= deadline_after(*no_inbox_since_, heartbeat_);
  if (for_long) inbox_ = Inbox::refused;
  subscribe_at_ = deadline_after(now, for_long ? heartbeat_ * once_more : grown());
  ask_at_ = now;  // what was announced meanwhile was not heard
}

void WaitPlan::saw_inbox_refused(Deadline now) noexcept {
  told_.reset();
  inbox_ = Inbox::refused;
  subscribe_at_ = Deadline::max();
  ask_at_ = now;
}

void WaitPlan::saw_hint(Deadline now) noexcept { ask_at_ = now; }

std::optional<Deadline> WaitPlan::saw_grant(Deadline now, std::int64_t server_time) noexcept {
  ask_at_ = now;
  if (!told_ || server_time < told_->server_time) return std::nullopt;
  // Not in integers, since a message may say anything.
  const double since = 1e3 * (static_cast<double>(server_time) - static_cast<double>(told_->server_time));
  // The server's clock was set forward: nobody knows when that was. Thus it never counts from later than now.
  if (deadline_after(told_->sent, nanos(since / (1 + terms_.drift))) > now) return std::nullopt;
  const Deadline from = deadline_after(told_->sent, nanos(since * (1 - terms_.drift)));
  const LeaseClock::duration whole = LeaseClock::duration(terms_.ttl) - terms_.margin;
  if (deadline_after(from, whole - LeaseClock::duration(terms_.ttl) * 2 / 3) < now) return std::nullopt;
  return from;
}

LeaseClock::duration WaitPlan::jitter(LeaseClock::duration below) noexcept {
  // SplitMix64: two plans whose seeds differ by one bit have nothing in common.
  std::uint64_t z = random_ += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  z ^= z >> 31;
  return LeaseClock::duration(static_cast<LeaseClock::rep>(z % static_cast<std::uint64_t>(below.count())));
}

LeaseClock::duration WaitPlan::grown() noexcept {
  const LeaseClock::duration pause = interval_ * 3 / 4 + jitter(interval_ / 2);
  // The middle of the longest, so that its jitter still fits below longest_interval.
  interval_ = std::min<LeaseClock::duration>(interval_ * 8 / 5, LeaseClock::duration(longest_interval) * 4 / 5);
  return pause;
}

}  // namespace v0
}  // namespace redlease
