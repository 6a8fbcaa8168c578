#include "redlease/store/memory_store.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "fork.hpp"
#include "helper_names.hpp"
#include "mutex.hpp"

namespace redlease {
inline namespace v0 {

namespace {

constexpr auto highest_fence = static_cast<std::uint64_t>(highest_fencing_token);
constexpr std::size_t few_names = 1024;

// Grows with the wall clock, as a server's does, so that a fence from before a restart is not met again.
std::uint64_t clock_fence() noexcept {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  const auto micros = std::chrono::floor<std::chrono::microseconds>(now - seconds);
  return (static_cast<std::uint64_t>(seconds.count()) << 20) + static_cast<std::uint64_t>(micros.count());
}

// What is kept under one name: a lease, the memory of one, or the fence of a fenced value (nobody could read the value
// back, so it is not kept).
struct Entry {
  bool held(Deadline now) const noexcept { return now < expires; }
  Millis remaining(Deadline now) const noexcept { return std::chrono::ceil<Millis>(expires - now); }

  Deadline expires{Deadline::min()};
  Deadline since{};
  std::string token, holder, label;
  std::uint64_t fence{0};
  std::optional<FencingToken> resource{};
};

struct Hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view name) const noexcept { return std::hash<std::string_view>{}(name); }
};

class Table {
 public:
  Mutex mutex;

  Entry* find(std::string_view key) REDLEASE_REQUIRES(mutex) {
    const auto it = entries_.find(key);
    return it == entries_.end() ? nullptr : &it->second;
  }

  Entry& at(std::string_view key, Deadline now) REDLEASE_REQUIRES(mutex) {
    if (Entry* known = find(key)) return *known;
    if (entries_.size() >= sweep_at_) sweep(now);
    return entries_.try_emplace(std::string(key)).first->second;
  }

  // Greater than every fence that this name ever had: if the name was forgotten, those were at most `forgotten_`.
  std::optional<std::uint64_t> next_fence(const Entry& entry, std::optional<FencingToken> floor) const
      REDLEASE_REQUIRES(mutex) {
    const auto lowest = static_cast<std::uint64_t>(floor.value_or(FencingToken{}));
    const std::uint64_t past = std::max({entry.fence, forgotten_, lowest});
    if (past >= highest_fence) return std::nullopt;
    return std::max(past + 1, clock_fence());
  }

 private:
  // Forgets free names, so that memory does not grow with every name ever leased. Fences that a floor raised above the
  // clock stay, since one of them in `forgotten_` would raise those of all new names.
  void sweep(Deadline now) REDLEASE_REQUIRES(mutex) {
    const std::uint64_t clock = clock_fence();
    for (auto it = entries_.begin(); it != entries_.end();) {
      const Entry& entry = it->second;
      if (entry.held(now) || entry.resource || entry.fence > clock) {
        ++it;
      } else {
        forgotten_ = std::max(forgotten_, entry.fence);
        it = entries_.erase(it);
      }
    }
    sweep_at_ = std::max(few_names, 2 * entries_.size());
  }

  std::unordered_map<std::string, Entry, Hash, std::equal_to<>> entries_ REDLEASE_GUARDED_BY(mutex);
  std::uint64_t forgotten_ REDLEASE_GUARDED_BY(mutex){0};
  std::size_t sweep_at_ REDLEASE_GUARDED_BY(mutex){few_names};
};

struct Registry {
  Mutex mutex;
  std::map<std::string, std::weak_ptr<Table>, std::less<>> tables REDLEASE_GUARDED_BY(mutex);
};

std::shared_ptr<Table> table_called(const std::string& name) {
  // Never destroyed: stores in statics may be made and used until the process ends.
  static auto* const registry = new PerProcess<Registry>([] { return new Registry; });
  Registry& known = registry->get();
  const MutexLock lock(known.mutex);
  if (const auto it = known.tables.find(name); it != known.tables.end()) {
    if (auto table = it->second.lock()) return table;
  }
  std::erase_if(known.tables, [](const auto& named) { return named.second.expired(); });
  auto table = std::make_shared<Table>();
  known.tables.emplace(name, table);
  return table;
}

}  // namespace

// The table is found anew in a forked child, by its name: there, too, all stores of one name share one.
struct MemoryStore::State {
  State(const Clock& c, std::string where, std::function<std::shared_ptr<Table>()> find_table)
      : clock(c),
        server(std::move(where)),
        table([find_table = std::move(find_table)] { return new std::shared_ptr<Table>(find_table()); }) {}

  std::optional<Error> over(const Limits& limits) const {
    const bool cancelled = limits.stop.stop_requested();
    if (!cancelled && LeaseClock::now() < limits.deadline) return std::nullopt;
    return Error{cancelled ? Errc::cancelled : Errc::timed_out,
                 "a call to " + server + " was not begun; nothing was changed"};
  }

  Error holds(std::string_view key, std::string_view what) const {
    std::string detail = "the key " + quoted(key) + " in " + server + " holds ";
    return {Errc::not_a_lease, detail.append(what).append("; nothing was changed. Choose another name")};
  }
  Error holds_no_lease(std::string_view key) const { return holds(key, "a fenced value, not a lease"); }

  static std::optional<LossCause> loss(const Entry* entry, std::string_view token, Deadline now) noexcept {
    if (entry != nullptr && entry->resource) return LossCause::taken;
    if (entry == nullptr || !entry->held(now)) return LossCause::gone;
    if (entry->token != token) return LossCause::taken;
    return std::nullopt;
  }

  const Clock& clock;
  const std::string server;
  PerProcess<std::shared_ptr<Table>> table;
};

MemoryStore::MemoryStore(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}

MemoryStore::MemoryStore(const Clock& clock)
    : MemoryStore(std::make_unique<State>(clock, "memory:", [] { return std::make_shared<Table>(); })) {}

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
  Table& table = *state_->table.get();
  const MutexLock lock(table.mutex);
  const Deadline now = state_->clock.now();  // once more: others may have been here before the lock was had
  Entry& entry = table.at(request.key, now);
  if (entry.resource) return state_->holds_no_lease(request.key);
  if (entry.held(now)) {
    if (entry.token != request.token) {
      return Busy{entry.remaining(now), entry.holder + (entry.label.empty() ? "" : " ") + entry.label};
    }
    entry.expires = std::max(entry.expires, deadline_after(now, request.ttl));
    return Granted{FencingToken{entry.fence}, counted_from};
  }
  const auto fence = table.next_fence(entry, request.floor);
  if (!fence) {
    return Error{Errc::server_error, "the fence of " + quoted(request.key) + " in " + state_->server +
                                         " cannot grow beyond 2^53 - 2; nothing was granted. Choose another name"};
  }
  entry.token = request.token;
  entry.holder = request.holder;
  entry.label = request.label;
  entry.fence = *fence;
  entry.since = now;
  entry.expires = deadline_after(now, request.ttl);
  return Granted{FencingToken{*fence}, counted_from};
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
  Table& table = *state_->table.get();
  const MutexLock lock(table.mutex);
  const Deadline now = state_->clock.now();
  Entry* const entry = table.find(key);
  renewal.cause = State::loss(entry, token, now);
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
  Table& table = *state_->table.get();
  const MutexLock lock(table.mutex);
  Entry* const entry = table.find(key);
  if (const auto cause = State::loss(entry, token, state_->clock.now())) return {ReleaseOutcome::not_held, cause, {}};
  entry->expires = Deadline::min();
  return {ReleaseOutcome::released, {}, {}};
}

Result<LeaseInfo> MemoryStore::inspect(std::string_view key, const Limits& limits) {
  if (auto error = state_->over(limits)) return *std::move(error);
  Table& table = *state_->table.get();
  const MutexLock lock(table.mutex);
  const Deadline now = state_->clock.now();
  const Entry* const entry = table.find(key);
  LeaseInfo info;
  if (entry == nullptr) return info;
  if (entry->resource) return state_->holds_no_lease(key);
  info.fence = FencingToken{entry->fence};
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
  Table& table = *state_->table.get();
  const MutexLock lock(table.mutex);
  Entry* const entry = table.find(key);
  if (entry != nullptr && entry->resource) return state_->holds_no_lease(key);
  const bool held = entry != nullptr && entry->held(state_->clock.now());
  if (held) entry->expires = Deadline::min();
  return held;
}

Result<Fenced> MemoryStore::fenced_set(std::string_view key, std::string_view, FencingToken fence,
                                       const Limits& limits) {
  if (auto error = state_->over(limits)) return *std::move(error);
  Table& table = *state_->table.get();
  const MutexLock lock(table.mutex);
  const Deadline now = state_->clock.now();
  Entry& entry = table.at(key, now);
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
