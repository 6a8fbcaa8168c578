#pragma once
// What the tests of waiting at a MemoryStore through a Client stand on.
#include <gtest/gtest.h>

#include "promise_support.hpp"

namespace redlease::testing_support {

inline const LeaseKey key("k");
// Nobody loses a lease because the machine is busy.
inline LeaseOptions patient(Millis wait = forever, Millis ttl = 10min) { return {.ttl = ttl, .wait = wait}; }

class MemoryWait : public testing::Test {
 protected:
  LeaseInfo info() { return client.inspect(key).value(); }
  bool wait_for_waiters(std::size_t n) {
    return eventually([&] { return info().waiters == n; }, 60s);
  }
  bool free_and_nobody_waits() { return !info().held && info().waiters == 0; }

  Client client{"memory:"};
};

}  // namespace redlease::testing_support
