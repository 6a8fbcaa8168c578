#include "store/memory_table.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "fork.hpp"

namespace redlease {
inline namespace v0 {

namespace {

constexpr auto highest_fence = static_cast<std::uint64_t>(highest_fencing_token);

// Grows with the wall clock, as a server's does, so that a fence from before a restart is not met again.
std::uint64_t clock_fence() noexcept {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  const auto micros = std::chrono::floor<std::chrono::microseconds>(now - seconds);
  return (static_cast<std::uint64_t>(seconds.count()) << 20) + static_cast<std::uint64_t>(micros.count());
}

// Where in the queue one of this arrival is, or would be.
template <class Queue>
auto place_of(const Waiter& waiter, Queue& queue) noexcept {
  return std::ranges::lower_bound(queue, waiter.arrival, {}, &Waiter::arrival);
}

}  // namespace

Entry* MemoryTable::find(std::string_view key) {
  const auto it = entries_.find(key);
  return it == entries_.end() ? nullptr : &it->second;
}

Entry& MemoryTable::at(std::string_view key, Deadline now) {
  if (Entry* known = find(key)) return *known;
  if (entries_.size() >= sweep_at_) sweep(now);
  return entries_.try_emplace(std::string(key)).first->second;
}

// Greater than every fence that this name ever had: if the name was forgotten, those were at most `forgotten_`.
std::optional<std::uint64_t> MemoryTable::next_fence(const Entry& entry, std::optional<FencingToken> floor) const {
  const auto lowest = static_cast<std::uint64_t>(floor.value_or(FencingToken{}));
  const std::uint64_t past = std::max({entry.fence, forgotten_, lowest});
  if (past >= highest_fence) return std::nullopt;
  return std::max(past + 1, clock_fence());
}

bool MemoryTable::grant(Entry& entry, const AcquireRequest& request, Deadline now) {
  const auto fence = next_fence(entry, request.floor);
  if (!fence) return false;
  entry.token = request.token;
  entry.holder = request.holder;
  entry.label = request.label;
  entry.fence = *fence;
  entry.since = now;
  entry.expires = deadline_after(now, request.ttl);  // last: memory may have run out before
  return true;
}

void MemoryTable::serve(Entry& entry, Deadline now) {
  while (!entry.held(now) && !entry.queue.empty()) {
    Waiter& first = *entry.queue.front();
    const bool granted = grant(entry, first.request, now);
    entry.queue.erase(entry.queue.begin());
    first.standing = granted ? Waiter::Standing::granted : Waiter::Standing::refused;
    first.called.notify_one();
  }
}

void MemoryTable::free(Entry& entry, Deadline now) {
  entry.expires = Deadline::min();
  serve(entry, now);
}

std::optional<LossCause> MemoryTable::loss(const Entry* entry, std::string_view token, Deadline now) noexcept {
  if (entry != nullptr && entry->resource) return LossCause::taken;
  if (entry == nullptr || !entry->held(now)) return LossCause::gone;
  if (entry->token != token) return LossCause::taken;
  return std::nullopt;
}

Released MemoryTable::release(std::string_view key, std::string_view token, Deadline now) {
  Entry* const entry = find(key);
  const auto cause = loss(entry, token, now);
  if (cause) {
    if (entry != nullptr) serve(*entry, now);
    return {ReleaseOutcome::not_held, cause, {}};
  }
  free(*entry, now);
  return {ReleaseOutcome::released, {}, {}};
}

void MemoryTable::join(Entry& entry, Waiter& waiter, Deadline now) {
  if (waiter.arrival == 0) {
    waiter.arrival = ++arrivals_;
    waiter.since = now;
  }
  entry.queue.insert(place_of(waiter, entry.queue), &waiter);
  waiter.standing = Waiter::Standing::queued;
}

void MemoryTable::leave(Entry& entry, Waiter& waiter) {
  entry.queue.erase(place_of(waiter, entry.queue));
  waiter.standing = Waiter::Standing::apart;
}

std::size_t MemoryTable::ahead_of(const Waiter& waiter, const Entry& entry) noexcept {
  return static_cast<std::size_t>(place_of(waiter, entry.queue) - entry.queue.begin());
}

// Forgets free names, so that memory does not grow with every name ever leased. Fences that a floor raised above the
// clock stay, since one of them in `forgotten_` would raise those of all new names.
void MemoryTable::sweep(Deadline now) {
  const std::uint64_t clock = clock_fence();
  for (auto it = entries_.begin(); it != entries_.end();) {
    const Entry& entry = it->second;
    if (entry.held(now) || entry.resource || !entry.queue.empty() || entry.fence > clock) {
      ++it;
    } else {
      forgotten_ = std::max(forgotten_, entry.fence);
      it = entries_.erase(it);
    }
  }
  sweep_at_ = std::max(few_names, 2 * entries_.size());
}

namespace {

struct Registry {
  Mutex mutex;
  std::map<std::string, std::weak_ptr<MemoryTable>, std::less<>> tables REDLEASE_GUARDED_BY(mutex);
};

}  // namespace

std::shared_ptr<MemoryTable> table_called(const std::string& name) {
  // Never destroyed: stores in statics may be made and used until the process ends.
  static auto* const registry = new PerProcess<Registry>([] { return new Registry; });
  Registry& known = registry->get();
  const MutexLock lock(known.mutex);
  if (const auto it = known.tables.find(name); it != known.tables.end()) {
    if (auto table = it->second.lock()) return table;
  }
  std::erase_if(known.tables, [](const auto& named) { return named.second.expired(); });
  auto table = std::make_shared<MemoryTable>();
  known.tables.emplace(name, table);
  return table;
}

}  // namespace v0
}  // namespace redlease
