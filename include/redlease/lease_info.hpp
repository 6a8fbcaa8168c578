#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "redlease/types.hpp"

namespace redlease {
inline namespace v0 {

/// Another holds it.
struct Busy {
  std::optional<Millis> remaining;  ///< of the holder's ttl, if it has one
  std::string holder;               ///< "host:pid label", if it is one of ours
};

/// What the server knows about a key at one moment. Old when you read it.
struct LeaseInfo {
  bool held{};
  std::string holder, label;        ///< "host:pid" and the label given; empty if the holder is not one of ours
  std::optional<Millis> remaining;  ///< none: free, or a key that never expires
  std::optional<Millis> held_for;   ///< since the grant, by the server's clock
  FencingToken fence{};             ///< of the last grant that is still remembered; 0: none is
  std::size_t waiters{};            ///< in the queue, those included who died there and were not passed over yet
  std::vector<std::string> queue;   ///< the first 100, in order: "host:pid label"
  std::vector<Millis> queued_for;   ///< how long each of `queue` has waited
};

/// What a fenced resource answered.
struct Fenced {
  bool accepted{};
  FencingToken highest_seen{};
};

}  // namespace v0
}  // namespace redlease
