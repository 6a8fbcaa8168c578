#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "concat.hpp"
#include "fork.hpp"
#include "helper_names.hpp"
#include "redlease/store/memory_store.hpp"
#include "store/memory_table.hpp"

namespace redlease {
inline namespace v0 {

// The table is found anew in a forked child, by its name: there, too, all stores of one name share one.
struct MemoryStore::State {
  State(const Clock& c, std::string where, std::function<std::shared_ptr<MemoryTable>()> find_table)
      : clock(c),
        server(std::move(where)),
        table([find_table = std::move(find_table)] { return new std::shared_ptr<MemoryTable>(find_table()); }) {}

  std::optional<Error> over(const Limits& limits) const {
    const bool cancelled = limits.stop.stop_requested();
    if (!cancelled && LeaseClock::now() < limits.deadline) return std::nullopt;
    return Error{cancelled ? Errc::cancelled : Errc::timed_out,
                 concat({"a call to ", server, " was not begun; nothing was changed"})};
  }

  Error holds(std::string_view key, std::string_view what) const {
    return {Errc::not_a_lease, concat({"the key ", quoted(key), " in ", server, " holds ", what,
                                       "; nothing was changed. Choose another name"})};
  }
  Error holds_no_lease(std::string_view key) const { return holds(key, "a fenced value, not a lease"); }
  Error no_fence_left(std::string_view key) const {
    return {Errc::server_error, concat({"the fence of ", quoted(key), " in ", server,
                                        " cannot grow beyond 2^53 - 2; nothing was granted. Choose another name"})};
  }

  const Clock& clock;
  const std::string server;
  PerProcess<std::shared_ptr<MemoryTable>> table;
};

// "host:pid label"
inline std::string shown(std::string_view holder, std::string_view label) {
  std::string text(holder);
  if (!label.empty()) text.append(" ").append(label);
  return text;
}

inline Busy busy_with(const Entry& entry, Deadline now) {
  return {entry.remaining(now), shown(entry.holder, entry.label)};
}

}  // namespace v0
}  // namespace redlease
