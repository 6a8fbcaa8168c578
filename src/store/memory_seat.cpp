#include <algorithm>
#include <chrono>
#include <utility>

#include "nap.hpp"
#include "redlease/store/seat.hpp"
#include "store/memory_state.hpp"

namespace redlease {
inline namespace v0 {

namespace {

// By the store's clock, as Redis tells its own.
std::int64_t micros(Deadline at) noexcept {
  return std::chrono::floor<std::chrono::microseconds>(at.time_since_epoch()).count();
}

}  // namespace

class MemoryStore::QueueSeat final : public Seat {
 public:
  QueueSeat(State& state, const AcquireRequest& request) : state_(state), request_(request) {
    request_.token = token_.str();
  }
  QueueSeat(const QueueSeat&) = delete;
  QueueSeat& operator=(const QueueSeat&) = delete;
  ~QueueSeat() override;

  const OwnerToken& token() const noexcept override { return token_; }
  bool has_queue() const noexcept override { return true; }
  bool has_inbox() const noexcept override { return true; }

  Answer ask(Ask, Millis, const Limits&) override;
  Subscribed subscribe(const Limits&) override { return Subscribed::yes; }
  Heard listen(const Limits&) override;
  Released leave(const Limits&) override;

  Deadline spent_by() const noexcept override { return Deadline::min(); }
  std::unique_ptr<Doubt> doubt() override { return nullptr; }  // nobody asks: there is never any

 private:
  using Standing = Waiter::Standing;

  MemoryTable& table() { return *state_.table.get(); }
  Waiter& waiter();
  Grant heard(MemoryTable& where, Waiter&) REDLEASE_REQUIRES(where.mutex);

  State& state_;
  AcquireRequest request_;
  const OwnerToken token_{OwnerToken::generate()};
  std::unique_ptr<Waiter> waiter_{};  // null: nothing was asked yet
  std::uint64_t generation_{0};       // of the process it was made in
};

std::unique_ptr<Seat> MemoryStore::seat(const AcquireRequest& request) {
  return std::make_unique<QueueSeat>(*state_, request);
}

MemoryStore::QueueSeat::~QueueSeat() {
  if (!waiter_) return;
  if (generation_ != fork_generation()) {
    (void)waiter_.release();  // the parent's, where it may be called this moment: leaked
    return;
  }
  MemoryTable& where = table();
  const MutexLock lock(where.mutex);
  try {
    if (waiter_->standing == Standing::queued) where.leave(*where.find(request_.key), *waiter_);
    if (waiter_->standing == Standing::granted) where.release(request_.key, request_.token, state_.clock.now());
  } catch (...) {
    // Out of memory for the next one's grant: the key is free, and who waits for it finds that out by asking.
  }
}

Waiter& MemoryStore::QueueSeat::waiter() {
  if (!waiter_ || generation_ != fork_generation()) {
    (void)waiter_.release();
    waiter_.reset(new Waiter{.request = request_});
    generation_ = fork_generation();
  }
  return *waiter_;
}

Seat::Answer MemoryStore::QueueSeat::ask(Ask how, Millis, const Limits& limits) {
  const Deadline sent = state_.clock.now();
  if (auto error = state_.over(limits)) return *std::move(error);
  Waiter& self = waiter();
  MemoryTable& where = table();
  const MutexLock lock(where.mutex);
  const Deadline now = state_.clock.now();
  Entry& entry = where.at(request_.key, now);
  if (entry.resource) return state_.holds_no_lease(request_.key);
  const bool settled = self.standing == Standing::queued || self.standing == Standing::refused;
  // Before anybody is served, since its place may be the first: of one who slept through the lease it was granted.
  if (!settled && !entry.held_by(request_.token, now)) where.join(entry, self, now);
  where.serve(entry, now);
  if (self.standing == Standing::refused) return state_.no_fence_left(request_.key);
  if (entry.held_by(request_.token, now)) {
    self.standing = Standing::apart;
    entry.expires = std::max(entry.expires, deadline_after(now, request_.ttl));
    return Granted{FencingToken{entry.fence}, sent};
  }
  Busy busy = busy_with(entry, now);
  const WaitPlan::Place place{.remaining = busy.remaining,
                              .ahead = MemoryTable::ahead_of(self, entry),
                              .sent = sent,
                              .server_time = micros(now)};
  if (how == Ask::queue || how == Ask::reserve) return Queued{std::move(busy), place};
  where.leave(entry, self);
  return busy;
}

Seat::Heard MemoryStore::QueueSeat::listen(const Limits& limits) {
  Waiter& self = waiter();
  MemoryTable& where = table();
  const MutexLock lock(where.mutex);
  const auto called = [&] { return self.standing == Standing::granted || self.standing == Standing::refused; };
  while (!limits.stop.stop_requested()) {
    if (called()) return heard(where, self);
    const auto left = slice(limits.deadline);
    if (left <= LeaseClock::duration::zero()) return Silence::time_is_up;
    self.called.wait_for(where.mutex, limits.stop, left, called);
  }
  return Silence::stopped;
}

Seat::Grant MemoryStore::QueueSeat::heard(MemoryTable& where, Waiter& self) {
  if (self.standing == Standing::refused) return {};  // it asks, and is told why
  self.standing = Standing::apart;
  const Entry* const entry = where.find(request_.key);
  // Expired or broken before it was heard: it asks, and has its place again.
  if (entry == nullptr || !entry->held_by(request_.token, state_.clock.now())) return {};
  return {FencingToken{entry->fence}, micros(entry->since)};
}

// Whatever the limits: it takes no time, and nobody may be left in the queue.
Released MemoryStore::QueueSeat::leave(const Limits&) {
  Waiter& self = waiter();
  MemoryTable& where = table();
  const MutexLock lock(where.mutex);
  if (self.standing == Standing::queued) where.leave(*where.find(request_.key), self);
  self.standing = Standing::apart;
  return where.release(request_.key, request_.token, state_.clock.now());
}

}  // namespace v0
}  // namespace redlease
