// A job that should run once, on whichever machine comes first. The others skip it.
#include <chrono>
#include <cstdio>
#include <mutex>
#include <redlease/redlease.hpp>

#include "example.hpp"

using namespace std::chrono_literals;

namespace {

bool write_report_unless_busy(redlease::Client& redis, const char* me) {
  // Renewed in the background for as long as the work takes. If this process dies, it ends with its ttl.
  const redlease::LeaseGuard lease{redis, "example:report", std::try_to_lock, {.ttl = 30s, .label = me}};
  if (!lease) {
    const auto holder = redis.inspect("example:report");
    std::printf("%s: busy, held by %s\n", me, holder.has_value() ? holder.value().label.c_str() : "?");
    return false;
  }
  std::printf("%s: writes the report\n", me);
  if (std::string_view(me) == "first") {
    expect(!write_report_unless_busy(redis, "second"), "nobody else gets in while the first is at work");
  }
  return true;
}  // given back here

}  // namespace

int main() {
  redlease::Client redis{server_url()};
  expect(write_report_unless_busy(redis, "first"), "the first one runs");
  expect(write_report_unless_busy(redis, "third"), "the lease is free again after the first");
}
