#include "service/keeper.hpp"

#include <algorithm>
#include <utility>

#include "concat.hpp"
#include "helper_names.hpp"
#include "thread.hpp"

namespace redlease {
inline namespace v0 {

namespace {

constexpr Millis linger{1'000};        // how long the thread outlives its last work
constexpr Millis longest_wait{1'000};  // a suspended machine stops the kernel's timer, not the leases
constexpr Millis fake_clock_step{5};   // a clock that a test moves wakes nobody
constexpr Millis stall{100};
constexpr Millis longest_write{20};

}  // namespace

Keeper::Keeper(std::shared_ptr<LeaseStore> store, std::shared_ptr<Observer> observer, const Clock& clock,
               std::size_t prefix)
    : store_(std::move(store)), observer_(std::move(observer)), clock_(clock), prefix_(prefix) {}

void Keeper::keep(Kept& kept) {
  const MutexLock lock(mutex_);
  if (closed_) return;
  start();
  take_slot(kept);
  try {
    schedule(kept);
    // What was let go leaves its node behind.
    if (timers_.size() > 2 * kept_ + 64) {
      timers_.sweep([this](const TimerHeap::Node& node)
                        REDLEASE_REQUIRES(mutex_) { return awake(node, Where::timers) == nullptr; });
    }
  } catch (...) {
    free_slot(kept);
    out_of_step_ = true;
    upkeep_->wake();
    throw;
  }
  longest_op_timeout_ = std::max(longest_op_timeout_, kept.plan.op_timeout());
  if (slots_[kept.slot].alarm < wake_at_) upkeep_->wake();
}

void Keeper::let_go(Kept& kept) noexcept {
  {
    const MutexLock lock(mutex_);
    free_slot(kept);
    busy_until_ = LeaseClock::now();
    kept.plan.end();
    if (kept.loss.load()) orphans_.forget(kept.token());
  }
  if (kept.call) kept.call->withdraw();
}

std::stop_token Keeper::stop_token(Kept& kept) noexcept {
  const MutexLock lock(mutex_);
  if (!kept.stop.stop_possible()) {
    try {
      kept.stop = std::stop_source();
    } catch (const std::bad_alloc&) {
      return {};
    }
    // What was signalled before anybody asked.
    if (kept.stopped) kept.stop.request_stop();
  }
  return kept.stop.get_token();
}

bool Keeper::withdraw(Orphan orphan) noexcept {
  Outbox out;
  try {
    const MutexLock lock(mutex_);
    if (closed_) return false;
    start();
    longest_op_timeout_ = std::max(longest_op_timeout_, orphan.op_timeout);
    adopt(std::move(orphan), LeaseClock::now(), out);
    upkeep_->wake();
  } catch (...) {
    return false;
  }
  deliver(out);
  return true;
}

void Keeper::notice(Kept& kept) noexcept {
  try {
    Outbox out;
    {
      const MutexLock lock(mutex_);
      if (!closed_) return;
      while (kept.plan.signal().at <= clock_.now()) signal(kept, out);  // to stop, and that it is lost
    }
    for (const auto& call : out.calls) call.function();
  } catch (const std::bad_alloc&) {
    // Untold, as there is no memory to tell with.
  }
}

void Keeper::close() noexcept {
  std::jthread thread;
  {
    const MutexLock lock(mutex_);
    if (closed_) return;
    closed_ = true;
    close_by_ = deadline_in(longest_op_timeout_);
    orphans_.hurry(LeaseClock::now());
    for (const Slot& slot : slots_) {
      if (slot.kept != nullptr) free_slot(*slot.kept);
    }
    if (running_) upkeep_->wake();
    thread.swap(thread_);
  }
  if (thread.joinable()) thread.join();
  notifier_.close();
}

void Keeper::take_slot(Kept& kept) {
  if (free_slot_ == Kept::no_slot) {
    if (slots_.size() == slots_.capacity()) slots_.reserve(slots_.size() + slots_.size() / 8 + 64);
    slots_.emplace_back();
    free_slot_ = static_cast<std::uint32_t>(slots_.size() - 1);
  }
  kept.slot = free_slot_ & Kept::no_slot;
  free_slot_ = slots_[kept.slot].next_free;
  Slot& slot = slots_[kept.slot];
  slot.kept = &kept;
  slot.alarm = Deadline::max();
  slot.where = Where::timers;
  ++kept_;
}

void Keeper::free_slot(Kept& kept) {
  if (kept.slot == Kept::no_slot) return;
  Slot& slot = slots_[kept.slot];
  slot.kept = nullptr;
  ++slot.generation;
  slot.next_free = free_slot_ & Kept::no_slot;
  free_slot_ = kept.slot;
  kept.slot = Kept::no_slot;
  --kept_;
}

// The thread, if there is none.
void Keeper::start() {
  busy_until_ = LeaseClock::now();
  if (running_) return;
  if (!upkeep_) upkeep_ = store_->upkeep();
  wake_at_ = Deadline::min();
  thread_ = start_thread("redlease-keeper", [this] { run(); });
  running_ = true;
}

void Keeper::run() noexcept {
  Upkeep& upkeep = *upkeep_;
  const bool real = &clock_ == &Clock::real();
  Upkeep::News news;
  Outbox out;
  Deadline expected = Deadline::max();
  std::unique_ptr<Upkeep> done;  // ends without the lock
  while (!done) {
    try {
      Deadline until = Deadline::max();
      bool over = false;
      {
        const MutexLock lock(mutex_);
        const Deadline now = LeaseClock::now();
        if (now > expected && now - expected > stall) tell(out, &Observer::stalled, {}, {.elapsed = now - expected});
        until = step(news, out);
        if (closed_) until = std::min(until, close_by_);
        over = this->over();
        wake_at_ = until;
      }
      deliver(out);
      const Deadline now = LeaseClock::now();
      upkeep.flush({deadline_after(now, longest_write), {}});
      news.answers.clear();
      news.no_connection.reset();
      if (over) {
        const MutexLock lock(mutex_);
        if (!this->over()) continue;  // something came while there was no lock
        running_ = false;
        done = std::move(upkeep_);
        continue;
      }
      until = real ? std::min(until, deadline_after(now, longest_wait)) : deadline_after(now, fake_clock_step);
      upkeep.wait(until, news);
      expected = std::max(until, now);
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(Millis(1));  // the next round may find some
      const MutexLock lock(mutex_);
      out_of_step_ = true;
    }
  }
}

// Nothing is left to be done, or there is no more time for it.
bool Keeper::over() {
  const Deadline now = LeaseClock::now();
  if (closed_) return orphans_.empty() || now >= close_by_;
  if (!orphans_.empty() || kept_ > 0) busy_until_ = now;
  return now - busy_until_ >= linger;
}

void Keeper::deliver(Outbox& out) noexcept {
  for (const Notifier::Call& call : out.calls) {
    try {
      notifier_.post(call);
    } catch (...) {
      call.function();  // no thread can be had: better here than not at all
    }
  }
  out.calls.clear();
  out.signals = 0;
  for (Tale& tale : out.tales) {
    tale.event.key = tale.key;
    tale.event.server = store_->server();
    tale.event.error = tale.error.get();
    ((*observer_).*tale.method)(tale.event);
  }
  out.tales.clear();
}

void Keeper::tell(Outbox& out, void (Observer::*method)(const Event&) noexcept, std::string_view key,
                  const Event& event, std::shared_ptr<const Error> error) noexcept {
  if (!observer_) return;
  try {
    out.tales.push_back({method, std::string(key.substr(std::min(prefix_, key.size()))), event, std::move(error)});
  } catch (const std::bad_alloc&) {
    // Untold.
  }
}

void Keeper::adopt(Orphan orphan, Deadline first, Outbox& out) {
  const auto dropped = orphans_.add(std::move(orphan), first);
  if (dropped) give_up(*dropped, Errc::unknown_outcome, "too many others were to be withdrawn", out);
}

void Keeper::give_up(const Orphan& orphan, Errc code, std::string_view why, Outbox& out) {
  if (!observer_) return;
  tell(out, &Observer::orphan_withdrawn, orphan.key, {},
       std::make_shared<const Error>(Error{
           code, concat({"what a lost call or a lost lease may have left of ", quoted(orphan.key), " at ",
                         store_->server(), " was not withdrawn: ", why, ". It ends with its ttl at the latest"})}));
}

}  // namespace v0
}  // namespace redlease
