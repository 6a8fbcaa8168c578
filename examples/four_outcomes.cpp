// An acquire ends in one of four ways, and match() does not compile with one left out.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <redlease/redlease.hpp>

#include "example.hpp"

using namespace std::chrono_literals;
using redlease::AcquireOutcome;

namespace {

pid_t server_pid() {
  const char* pid = std::getenv("REDLEASE_SERVER_PID");
  expect(pid != nullptr, "run by examples/with_server, with a server that it may stop");
  return std::atoi(pid);
}

AcquireOutcome tell(redlease::AcquireResult result) {
  return std::move(result).match(
      [](redlease::Lease lease) {
        std::printf("acquired: ours for %lld ms\n", static_cast<long long>(lease.remaining().count()));
        return AcquireOutcome::acquired;
      },
      [](redlease::Busy busy) {
        std::printf("busy: %s holds it\n", busy.holder.c_str());
        return AcquireOutcome::busy;
      },
      [](redlease::Claim doubtful) {
        std::printf("unknown: %s\n", doubtful.error().detail.c_str());
        ::kill(server_pid(), SIGCONT);
        // The cure goes the way of the doubtful request and with its token. retry() would ask for the lease again.
        const auto withdrawn = std::move(doubtful).withdraw(redlease::deadline_in(10s));
        expect(withdrawn == redlease::ReleaseOutcome::released, "the server had granted it; now it is taken back");
        return AcquireOutcome::unknown;
      },
      [](redlease::Unavailable unavailable) {
        std::printf("unavailable: %s\n", unavailable.error.detail.c_str());
        return AcquireOutcome::unavailable;
      });
}

}  // namespace

int main() {
  redlease::Client redis{server_url()};

  const auto held = redis.acquire("example:held", {.wait = 5s, .label = "the other one"}).lease().value();
  expect(tell(redis.try_acquire("example:held")) == AcquireOutcome::busy, "busy");
  expect(tell(redis.try_acquire("example:free")) == AcquireOutcome::acquired, "acquired");

  ::kill(server_pid(), SIGSTOP);
  expect(tell(redis.try_acquire("example:free", {.op_timeout = 200ms})) == AcquireOutcome::unknown, "unknown");
  expect(!redis.inspect("example:free").value().held, "nothing is left of the doubtful one");

  redlease::Client nowhere{"redis://127.0.0.1:1"};
  expect(tell(nowhere.try_acquire("example:free")) == AcquireOutcome::unavailable, "unavailable");
}
