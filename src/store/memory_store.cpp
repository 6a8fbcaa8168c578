#include "redlease/store/memory_store.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <utility>

#include "store/memory_state.hpp"

namespace redlease {
inline namespace v0 {

namespace {

constexpr std::size_t shown_waiters = 100;

}  // namespace

MemoryStore::MemoryStore(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}

MemoryStore::MemoryStore(const Clock& clock)
    : MemoryStore(std::make_unique<State>(clock, "memory:", [] { return std::make_shared<MemoryTable>(); })) {}

MemoryStore::~MemoryStore() = default;

std::shared_ptr<MemoryStore> MemoryStore::shared(std::string_view name) {
  auto state = std::make_unique<State>(Clock::real(), "memory:" + std::string(name),
                                       [name = std::string(name)] { return table_called(name); });
  state->table.get();  // from now on somebody has it
  return std::shared_ptr<MemoryStore>(new MemoryStore(std::move(state)));
}

Acquisition MemoryStore::acquire(const AcquireRequest& request, const Limits& limits) {
  const Deadline counted_from = state_->clock.now();
  if (auto error = state_->over(limits)) return *std::move(error);
  MemoryTable& table = *state_->table.get();
  const MutexLock lock(table.mutex);
  const Deadline now = state_->clock.now();  // once more: others may have been here before the lock was had
  Entry& entry = table.at(request.key, now);
  if (entry.resource) return state_->holds_no_lease(request.key);
  table.serve(entry, now);  // those who wait come first
  if (entry.held(now)) {
    if (entry.token != request.token) return busy_with(entry, now);
    entry.expires = std::max(entry.expires, deadline_after(now, request.ttl));
  } else if (!table.grant(entry, request, now)) {
    return state_->no_fence_left(request.key);
  }
  return Granted{FencingToken{entry.fence}, counted_from};
}

Renewal MemoryStore::renew(std::string_view key, std::string_view token, Millis ttl, const Limits& limits) {
  Renewal renewal = adopt(key, token, ttl, limits);
  renewal.fence.reset();
  return renewal;
}

Renewal MemoryStore::adopt(std::string_view key, std::string_view token, Millis ttl, const Limits& limits) {
  Renewal renewal;
  renewal.counted_from = state_->clock.now();
  if (auto error = state_->over(limits)) {
    renewal.error = *std::move(error);
    return renewal;
  }
  MemoryTable& table = *state_->table.get();
  const MutexLock lock(table.mutex);
  const Deadline now = state_->clock.now();
  Entry* const entry = table.find(key);
  renewal.cause = MemoryTable::loss(entry, token, now);
  if (renewal.cause) {
    renewal.outcome = RenewOutcome::lost;
    return renewal;
  }
  entry->expires = std::max(entry->expires, deadline_after(now, ttl));
  renewal.outcome = RenewOutcome::renewed;
  renewal.fence = FencingToken{entry->fence};
  return renewal;
}

Released MemoryStore::release(std::string_view key, std::string_view token, const Limits& limits) {
  if (auto error = state_->over(limits)) return {ReleaseOutcome::unavailable, {}, *std::move(error)};
  MemoryTable& table = *state_->table.get();
  const MutexLock lock(table.mutex);
  return table.release(key, token, state_->clock.now());
}

Result<LeaseInfo> MemoryStore::inspect(std::string_view key, const Limits& limits) {
  if (auto error = state_->over(limits)) return *std::move(error);
  MemoryTable& table = *state_->table.get();
  const MutexLock lock(table.mutex);
  const Deadline now = state_->clock.now();
  const Entry* const entry = table.find(key);
  LeaseInfo info;
  if (entry == nullptr) return info;
  if (entry->resource) return state_->holds_no_lease(key);
  info.fence = FencingToken{entry->fence};
  info.waiters = entry->queue.size();
  for (const Waiter* waiter : std::span(entry->queue).first(std::min(entry->queue.size(), shown_waiters))) {
    info.queue.push_back(shown(waiter->request.holder, waiter->request.label));
    info.queued_for.push_back(std::chrono::floor<Millis>(now - waiter->since));
  }
  info.held = entry->held(now);
  if (!info.held) return info;
  info.holder = entry->holder;
  info.label = entry->label;
  info.remaining = entry->remaining(now);
  info.held_for = std::chrono::floor<Millis>(now - entry->since);
  return info;
}

Result<bool> MemoryStore::break_lease(std::string_view key, const Limits& limits) {
  if (auto error = state_->over(limits)) return *std::move(error);
  MemoryTable& table = *state_->table.get();
  const MutexLock lock(table.mutex);
  Entry* const entry = table.find(key);
  if (entry != nullptr && entry->resource) return state_->holds_no_lease(key);
  const Deadline now = state_->clock.now();
  const bool held = entry != nullptr && entry->held(now);
  if (held) table.free(*entry, now);
  return held;
}

Result<Fenced> MemoryStore::fenced_set(std::string_view key, std::string_view, FencingToken fence,
                                       const Limits& limits) {
  if (auto error = state_->over(limits)) return *std::move(error);
  MemoryTable& table = *state_->table.get();
  const MutexLock lock(table.mutex);
  const Deadline now = state_->clock.now();
  Entry& entry = table.at(key, now);
  table.serve(entry, now);
  if (entry.held(now)) return state_->holds(key, "a lease, not a fenced value");
  const bool accepted = !entry.resource || fence >= *entry.resource;
  if (accepted) entry.resource = fence;
  return Fenced{accepted, *entry.resource};
}

Result<Unit> MemoryStore::ping(const Limits& limits) {
  if (auto error = state_->over(limits)) return *std::move(error);
  return Unit{};
}

std::string_view MemoryStore::server() const noexcept { return state_->server; }

}  // namespace v0
}  // namespace redlease
