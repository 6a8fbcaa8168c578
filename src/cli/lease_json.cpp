#include "cli/lease_json.hpp"

#include <nlohmann/json.hpp>

namespace redlease::cli {
namespace {

Json millis(const std::optional<Millis>& duration) { return duration ? Json(duration->count()) : Json(); }

}  // namespace

Json lease_json(const std::string& key, const LeaseInfo& info) {
  Json queue = Json::array();
  for (std::size_t i = 0; i < info.queue.size(); ++i) {
    const bool timed = i < info.queued_for.size();
    queue.push_back({{"waiter", info.queue[i]}, {"waited_ms", timed ? Json(info.queued_for[i].count()) : Json()}});
  }
  return {{"key", key},
          {"held", info.held},
          {"holder", info.holder},
          {"label", info.label},
          {"remaining_ms", millis(info.remaining)},
          {"held_for_ms", millis(info.held_for)},
          {"fence", static_cast<std::uint64_t>(info.fence)},
          {"waiters", info.waiters},
          {"queue", std::move(queue)}};
}

}  // namespace redlease::cli
