// One process acquires, another does the work: the token is handed over, not shared.
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <redlease/redlease.hpp>

#include "example.hpp"

using namespace std::chrono_literals;

namespace {

constexpr const char* key = "example:import";

int take_over(const std::string& token) {
  redlease::Client redis{server_url()};
  redlease::Lease lease = redis.adopt(key, redlease::OwnerToken(token), {.ttl = 30s, .label = "importer"});
  expect(!lease.held(), "before the server has confirmed it, an adopted lease is not held");
  expect(lease.renew() == redlease::RenewOutcome::renewed, "the server confirms it");
  std::printf("importer:  holds it for another %lld ms\n", static_cast<long long>(lease.remaining().count()));
  expect(lease.fencing_token().has_value(), "the fence came along");
  return lease.release() == redlease::ReleaseOutcome::released ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) return take_over(argv[1]);

  redlease::Client redis{server_url()};
  auto lease = redis.acquire(key, {.ttl = 30s, .wait = 5s, .label = "scheduler"}).lease().value();
  std::puts("scheduler: has the lease and hands it over");

  const std::string token = lease.token().str();
  lease.abandon();  // from here on this process leaves it alone: no renewal, no release
  expect(!lease.held(), "the giver no longer holds it");

  // Whoever may list processes sees arguments. Where others share the machine, use a pipe.
  const pid_t importer = spawn_self({token});
  int status = -1;
  expect(::waitpid(importer, &status, 0) == importer && status == 0, "the importer did its work");
  expect(!redis.inspect(key).value().held, "and gave the lease back");
  std::puts("scheduler: the importer is done and the lease is free");
}
