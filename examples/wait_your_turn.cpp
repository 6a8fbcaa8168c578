// Work that everybody has to do, one after another: wait for the lease, but not forever.
#include <chrono>
#include <cstdio>
#include <redlease/redlease.hpp>
#include <thread>

#include "example.hpp"

using namespace std::chrono_literals;

int main() {
  redlease::Client redis{server_url()};

  redlease::LeaseGuard first{redis, "example:stock:42", {.ttl = 30s, .wait = 5s}};
  std::puts("first: has the lease");

  try {
    const redlease::LeaseGuard hasty{redis, "example:stock:42", {.ttl = 30s, .wait = 100ms}};
    expect(false, "a lease that is held is not granted again");
  } catch (const redlease::AcquireError& error) {
    expect(error.code() == redlease::Errc::busy, "after 100 ms it is still busy");
    std::printf("hasty: gives up: %s\n", error.what());
  }

  std::stop_source shutdown;
  shutdown.request_stop();
  try {
    const redlease::LeaseGuard stopped{redis, "example:stock:42", {.ttl = 30s, .wait = 1h}, shutdown.get_token()};
    expect(false, "a wait ends when a stop is requested");
  } catch (const redlease::AcquireError& error) {
    expect(error.code() == redlease::Errc::cancelled, "and says so");
    std::puts("stopped: does not wait for an hour when the service shuts down");
  }

  std::jthread second([&redis] {
    const redlease::LeaseGuard lease{redis, "example:stock:42", {.ttl = 30s, .wait = 20s}};
    lease.ensure_held();
    std::puts("second: has the lease, after waiting for it");
  });
  std::this_thread::sleep_for(200ms);
  std::puts("first: gives it back");
  expect(first.release() == redlease::ReleaseOutcome::released, "the first gives it back");
  second.join();
}
