// Where the resource is in Redis itself, fenced_set checks the fence and writes in one step on the server.
#include <chrono>
#include <cstdio>
#include <redlease/redlease.hpp>

#include "example.hpp"

using namespace std::chrono_literals;
using redlease::FencingToken;

int main() {
  redlease::Client redis{server_url()};
  const auto write = [&redis](const char* value, FencingToken fence) {
    return redlease::fenced_set(redis, "example:config", value, fence).value();
  };

  auto slow = redis.acquire("example:config-writer", {.ttl = 1s, .wait = 5s}).lease().value();
  const FencingToken old_fence = *slow.fencing_token();
  expect(write("one", old_fence).accepted, "the holder writes");
  expect(write("two", old_fence).accepted, "and writes again: an equal fence is accepted");

  auto quick = redis.acquire("example:config-writer", {.wait = 30s}).lease().value();
  const FencingToken new_fence = *quick.fencing_token();
  expect(write("three", new_fence).accepted, "the next holder writes");

  const redlease::Fenced answer = write("four", old_fence);
  expect(!answer.accepted, "the stale writer is refused");
  expect(answer.highest_seen == new_fence, "and learns why");
  std::printf("fence %llu is refused, %llu has been seen\n", static_cast<unsigned long long>(old_fence),
              static_cast<unsigned long long>(new_fence));

  // A resource that remembers more than the server does (it lost its data, say) is healed by a floor.
  expect(quick.release() == redlease::ReleaseOutcome::released, "it is given back");
  const auto next = redis.acquire("example:config-writer", {.wait = 5s, .fence_floor = answer.highest_seen}).lease();
  expect(next.has_value() && next->fencing_token() > answer.highest_seen, "the next fence is above the floor");
}
