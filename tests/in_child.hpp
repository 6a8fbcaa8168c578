#pragma once
// For tests of what becomes of leases in processes that fork and end.
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "redlease/redlease.hpp"
#include "support/children.hpp"

namespace redlease {
inline namespace v0 {

// So long that no load of the machine is taken for a loss.
inline const LeaseOptions lasting{.ttl = Millis(600'000), .op_timeout = Millis(20'000)};

inline void require(bool truth, const std::string& what) {
  if (!truth) throw std::runtime_error(what);
}

// In a process of its own, which throws what is wrong and else ends with 0. One that ends by a signal shows as minus
// its number.
inline void expect_well_in_child(const std::function<void()>& body, Millis limit = Millis(60'000)) {
  const auto statuses = run_children(
      1, [&](int) { body(); }, limit);
  EXPECT_EQ(statuses, std::vector<int>{0});
}

inline Lease acquire(Client& client, const LeaseKey& key, const LeaseOptions& options = lasting) {
  auto lease = client.try_acquire(key, options).lease();
  if (!lease) throw std::runtime_error("could not acquire " + key.str());
  return *std::move(lease);
}

}  // namespace v0
}  // namespace redlease
