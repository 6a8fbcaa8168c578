#include "redlease/options.hpp"

#include <algorithm>

namespace redlease {
inline namespace v0 {

using namespace std::chrono_literals;

// Durations are divided, never multiplied: any value at all may stand here.
std::optional<std::string_view> flaw(const LeaseOptions& o) noexcept {
  if (o.ttl < 10ms || o.ttl > 24h) return "ttl must be between 10 ms and 24 h";
  if (o.wait < 0ms) return "wait must not be negative (0 tries once, forever has no limit)";
  if (o.op_timeout && (*o.op_timeout < 1ms || *o.op_timeout > o.ttl / 3)) {
    return "op_timeout must be between 1 ms and a third of ttl";
  }
  if (o.max_hold && *o.max_hold <= 0ms) return "max_hold must be positive (leave it out for no limit)";
  if (o.stop_before < 0ms || o.stop_before > o.ttl / 2) return "stop_before must be between 0 and half of ttl";
  if (o.fence_floor && *o.fence_floor >= FencingToken{std::uint64_t{1} << 52}) return "fence_floor must be below 2^52";
  if (o.label.size() > 256) return "label must have at most 256 bytes";
  return std::nullopt;
}

Millis op_timeout_of(const LeaseOptions& o) noexcept {
  return o.op_timeout.value_or(std::clamp<Millis>(o.ttl / 3, 1ms, 1s));
}

std::optional<std::string_view> flaw(const ClientOptions& o) noexcept {
  if (o.max_connections < 1 || o.max_connections > 65'535) return "max_connections must be between 1 and 65,535";
  // CLIENT SETNAME's own rule, and a bound of ours.
  if (!std::ranges::all_of(o.name, [](char c) { return c > ' ' && c <= '~'; }) || o.name.size() > 256) {
    return "name must be printable ASCII without spaces, at most 256 bytes";
  }
  if (o.key_prefix.size() > 511) return "key_prefix must have at most 511 bytes";
  if (!(o.drift >= 0 && o.drift < 0.5)) return "drift must be at least 0 and below 0.5";  // false for NaN too
  if (o.quarantine < 0ms) return "quarantine must not be negative (0 switches it off)";
  if (o.acks != 0) return "acks must be 0 for now: replica acknowledgement comes with Sentinel and Cluster support";
  if (o.tls.cert_file.empty() != o.tls.key_file.empty()) {
    return "tls.cert_file and tls.key_file must be given together or not at all";
  }
  return std::nullopt;
}

}  // namespace v0
}  // namespace redlease
