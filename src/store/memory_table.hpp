#pragma once
// What a MemoryStore keeps, and who waits for it.
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mutex.hpp"
#include "redlease/store/lease_store.hpp"

namespace redlease {
inline namespace v0 {

// One who waits for a lease. Belongs to its Seat. All but its request is guarded by the mutex of the table; whoever
// calls it holds that mutex meanwhile, so it cannot vanish under the call.
struct Waiter {
  enum class Standing : std::uint8_t {
    apart,
    queued,   // in the queue
    granted,  // it has the lease and does not know it
    refused,  // it was its turn, and no fence is left for it
  };

  AcquireRequest request;
  std::condition_variable_any called{};
  std::uint64_t arrival{0};  // its place among the others, which it keeps; 0: it has not come yet
  Deadline since{};          // of its arrival
  Standing standing{Standing::apart};
};

// What is kept under one name: a lease and those who wait for it, the memory of one, or the fence of a fenced value
// (nobody could read the value back, so it is not kept).
struct Entry {
  bool held(Deadline now) const noexcept { return now < expires; }
  bool held_by(std::string_view who, Deadline now) const noexcept { return held(now) && token == who; }
  Millis remaining(Deadline now) const noexcept { return std::chrono::ceil<Millis>(expires - now); }

  Deadline expires{Deadline::min()};
  Deadline since{};
  std::string token, holder, label;
  std::uint64_t fence{0};
  std::optional<FencingToken> resource{};
  std::vector<Waiter*> queue{};  // by their arrival; empty where there is a resource
};

// Nothing calls it when a lease expires: whoever asks next serves the queue.
class MemoryTable {
 public:
  Mutex mutex;

  Entry* find(std::string_view key) REDLEASE_REQUIRES(mutex);
  Entry& at(std::string_view key, Deadline now) REDLEASE_REQUIRES(mutex);

  // Of a free key. False: its fence cannot grow any more.
  bool grant(Entry&, const AcquireRequest&, Deadline now) REDLEASE_REQUIRES(mutex);
  // If the key is free, the first who waits has it now.
  void serve(Entry&, Deadline now) REDLEASE_REQUIRES(mutex);
  // The key is free from now on, but for those who wait.
  void free(Entry&, Deadline now) REDLEASE_REQUIRES(mutex);
  // Why it is not this token's; nothing: it is.
  static std::optional<LossCause> loss(const Entry*, std::string_view token, Deadline now) noexcept;
  Released release(std::string_view key, std::string_view token, Deadline now) REDLEASE_REQUIRES(mutex);

  // Takes its place in the queue: the one it had, or the last.
  void join(Entry&, Waiter&, Deadline now) REDLEASE_REQUIRES(mutex);
  void leave(Entry&, Waiter&) REDLEASE_REQUIRES(mutex);
  static std::size_t ahead_of(const Waiter&, const Entry&) noexcept;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const noexcept { return std::hash<std::string_view>{}(name); }
  };
  static constexpr std::size_t few_names = 1024;

  std::optional<std::uint64_t> next_fence(const Entry&, std::optional<FencingToken> floor) const
      REDLEASE_REQUIRES(mutex);
  void sweep(Deadline now) REDLEASE_REQUIRES(mutex);

  std::unordered_map<std::string, Entry, Hash, std::equal_to<>> entries_ REDLEASE_GUARDED_BY(mutex);
  std::uint64_t forgotten_ REDLEASE_GUARDED_BY(mutex){0};
  std::size_t sweep_at_ REDLEASE_GUARDED_BY(mutex){few_names};
  std::uint64_t arrivals_ REDLEASE_GUARDED_BY(mutex){0};
};

// The one of this name in this process; it lives as long as somebody has it.
std::shared_ptr<MemoryTable> table_called(const std::string& name);

}  // namespace v0
}  // namespace redlease
