#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "mutex.hpp"
#include "redlease/clock.hpp"
#include "redlease/observer.hpp"
#include "redlease/plan/renewal_plan.hpp"
#include "redlease/store/lease_store.hpp"
#include "redlease/store/upkeep.hpp"
#include "service/loss_call.hpp"
#include "service/notifier.hpp"
#include "service/orphans.hpp"
#include "service/timer_heap.hpp"

namespace redlease {
inline namespace v0 {

// A loss, or none yet. Of one byte: for an atomic optional clang wants a library of its own.
class AtomicLoss {
 public:
  std::optional<LossCause> load() const noexcept {
    const int value = value_.load();
    return value == none ? std::nullopt : std::optional(static_cast<LossCause>(value));
  }
  void store(LossCause cause) noexcept { value_.store(static_cast<std::uint8_t>(cause)); }

 private:
  static constexpr std::uint8_t none = 0xff;
  std::atomic<std::uint8_t> value_{none};
};

// One lease in a Keeper's care. Belongs to whoever holds the lease, who lets it go before its life ends. `name` and
// `owner` stay as and where they are until then. What every renewal looks at comes first and close together: with very
// many leases most of the time goes into waiting for memory.
class Kept {
 public:
  static constexpr std::uint32_t no_slot = (std::uint32_t{1} << 30) - 1;

  // `name`: with the prefix.
  Kept(const std::string& name, const std::string& owner, Deadline since, const RenewalPlan& first_plan,
       std::shared_ptr<LossCall> loss_call) noexcept
      : key_(name.data()),
        token_(owner.data()),
        key_size_(static_cast<std::uint16_t>(name.size())),
        token_size_less_1_(static_cast<std::uint8_t>(owner.size() - 1)),
        deadline(first_plan.deadline()),
        plan(first_plan),
        acquired(since),
        call(std::move(loss_call)) {
    static_assert(LeaseKey::max_size <= 0xffff && OwnerToken::max_size <= 0x100);
  }

  std::string_view key() const noexcept { return {key_, key_size_}; }
  std::string_view token() const noexcept { return {token_, token_size_less_1_ + std::size_t{1}}; }

 private:
  const char *key_, *token_;
  const std::uint16_t key_size_;
  const std::uint8_t token_size_less_1_;

 public:
  // For the holder to read at any time, as is `deadline`.
  AtomicLoss loss;  // set when the loss is announced

  // What is not for the holder is the Keeper's while it keeps it.
  std::uint32_t slot : 30 {no_slot};
  bool stopped : 1 {false};  // its work was asked to stop

  std::atomic<Deadline> deadline;
  RenewalPlan plan;

  const Deadline acquired;
  std::stop_source stop{std::nostopstate};
  const std::shared_ptr<LossCall> call;  // null: no on_lost
};

// Renews the leases of one Client, signals their loss, and withdraws what nobody wants any more. One thread, which ends
// when there has been nothing to do for a while. Thread-safe.
//
// What is due goes out together, the one that is lost first in front. Nothing that the thread does waits for a server
// longer than until the next loss is due, or 20 ms for a store without an Upkeep of its own; connecting has a thread of
// its own. The program's functions are called on the Notifier's threads, an Observer's on this one.
class Keeper {
 public:
  // `prefix`: how much of a key is not part of its name.
  Keeper(std::shared_ptr<LeaseStore>, std::shared_ptr<Observer>, const Clock&, std::size_t prefix);
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  ~Keeper() { close(); }

  // From now on it is renewed and watched. Does nothing once closed. Throws std::bad_alloc, and std::system_error if
  // there can be no thread.
  void keep(Kept&);

  // No renewal leaves any more, nothing is signalled any more. Waits for its on_lost if that is going on, unless called
  // from inside it.
  void let_go(Kept&) noexcept;

  // A token that stops when the lease is lost or about to be.
  std::stop_token stop_token(Kept&) noexcept;

  // For whoever has seen the deadline pass. Behind it that deadline stays as it is, also if a renewal was answered in
  // the same instant. If it is closed and nobody watches any more: signals on this thread what is due.
  void notice(Kept&) noexcept;

  // Withdraws it in the background. False if that cannot be.
  bool withdraw(Orphan) noexcept;

  // Keeps nothing any more. Gives the orphans one op_timeout, waits for the program's functions that are going on.
  void close() noexcept;

 private:
  // What is to be told when no lock is held.
  struct Tale {
    void (Observer::*method)(const Event&) noexcept;
    std::string key;
    Event event;
    std::shared_ptr<const Error> error;
  };
  struct Outbox {
    std::vector<Tale> tales;
    std::vector<Notifier::Call> calls;
    std::size_t signals{0};  // that this round has seen to
  };
  // Where a lease waits: by a node in timers_ or in due_, or without one for an answer.
  enum class Where : std::uint8_t { timers, due, away };
  // What is looked at for each node, close together, since the leases themselves are far apart.
  struct Slot {
    Kept* kept{nullptr};
    Deadline alarm{Deadline::max()};  // of the one node that counts; away: of the signal
    std::uint32_t generation : 31 {0};
    std::uint32_t next_free : 30 {Kept::no_slot};
    Where where : 2 {Where::timers};
  };

  void start() REDLEASE_REQUIRES(mutex_);
  void run() noexcept;
  bool over() REDLEASE_REQUIRES(mutex_);
  void deliver(Outbox&) noexcept;
  void tell(Outbox&, void (Observer::*)(const Event&) noexcept, std::string_view key, const Event&,
            std::shared_ptr<const Error> = {}) noexcept;  // key: with the prefix
  void adopt(Orphan, Deadline first, Outbox&) REDLEASE_REQUIRES(mutex_);
  void give_up(const Orphan&, Errc, std::string_view why, Outbox&);

  // One round of the thread, in keeper_step.cpp: what is new, what the time has brought, what is to be sent.
  Deadline step(const Upkeep::News&, Outbox&) REDLEASE_REQUIRES(mutex_);
  void saw(const Upkeep::Answer&, Deadline now, Outbox&) REDLEASE_REQUIRES(mutex_);
  void saw_of_orphan(const Upkeep::Answer&, Outbox&) REDLEASE_REQUIRES(mutex_);
  void saw_no_connection(const Error&, Deadline now, Outbox&) REDLEASE_REQUIRES(mutex_);
  void fire(Deadline now, Outbox&) REDLEASE_REQUIRES(mutex_);
  std::span<const TimerHeap::Node> take_turn(std::span<TimerHeap::Node> room, Deadline until) REDLEASE_REQUIRES(mutex_);
  bool send(Kept&, Deadline now) REDLEASE_REQUIRES(mutex_);
  void send_due(Deadline now, Deadline real_now) REDLEASE_REQUIRES(mutex_);
  void signal(Kept&, Outbox&) REDLEASE_REQUIRES(mutex_);
  void ask_to_stop(Kept&, Outbox&) REDLEASE_REQUIRES(mutex_);
  void lose(Kept&, LossCause, Outbox&) REDLEASE_REQUIRES(mutex_);
  void schedule(const Kept&) REDLEASE_REQUIRES(mutex_);
  void schedule(const Kept&, Deadline) REDLEASE_REQUIRES(mutex_);
  void schedule_all(Outbox&) REDLEASE_REQUIRES(mutex_);
  void take_slot(Kept&) REDLEASE_REQUIRES(mutex_);
  void free_slot(Kept&) REDLEASE_REQUIRES(mutex_);
  void look_after_away(Deadline now) REDLEASE_REQUIRES(mutex_);
  Kept* awake(const TimerHeap::Node&, Where) REDLEASE_REQUIRES(mutex_);  // null: the node means nothing any more

  const std::shared_ptr<LeaseStore> store_;
  const std::shared_ptr<Observer> observer_;
  const Clock& clock_;
  const std::size_t prefix_;

  Mutex mutex_;
  std::unique_ptr<Upkeep> upkeep_;  // made under the mutex, then the thread's; wake() is anybody's
  std::vector<Slot> slots_ REDLEASE_GUARDED_BY(mutex_);
  std::uint32_t free_slot_ REDLEASE_GUARDED_BY(mutex_){Kept::no_slot};
  std::size_t kept_ REDLEASE_GUARDED_BY(mutex_){0};
  TimerHeap timers_ REDLEASE_GUARDED_BY(mutex_);  // by what is to be done next
  TimerHeap due_ REDLEASE_GUARDED_BY(mutex_);     // to be renewed when there is room; by when they are signalled
  // No later than the first signal of those that are away.
  Deadline away_alarm_ REDLEASE_GUARDED_BY(mutex_){Deadline::max()};
  bool out_of_step_ REDLEASE_GUARDED_BY(mutex_){false};  // memory was short: somebody may have no node
  Orphans orphans_ REDLEASE_GUARDED_BY(mutex_);
  Millis longest_op_timeout_ REDLEASE_GUARDED_BY(mutex_){1};
  Deadline wake_at_ REDLEASE_GUARDED_BY(mutex_){Deadline::min()};  // the thread looks again then
  Deadline busy_until_ REDLEASE_GUARDED_BY(mutex_){};              // lingers from then on
  Deadline close_by_ REDLEASE_GUARDED_BY(mutex_){};
  bool running_ REDLEASE_GUARDED_BY(mutex_){false};
  bool closed_ REDLEASE_GUARDED_BY(mutex_){false};
  Notifier notifier_;
  std::jthread thread_;
};

}  // namespace v0
}  // namespace redlease
