// Uses one Client in every way that it has, for as long as is wished, and watches that the process does not grow.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "redlease/redlease.hpp"
#include "support/children.hpp"
#include "support/fault_proxy.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "support/shared_page.hpp"
#include "support/sleepless.hpp"

using namespace redlease;  // NOLINT(google-build-using-namespace): a program, not a header

namespace {

std::atomic<long> acquired{0}, busy{0}, unknown{0}, unavailable{0}, wrong{0};

std::ptrdiff_t entries(const char* directory) {
  using Entries = std::filesystem::directory_iterator;
  return std::distance(Entries(directory), Entries());
}

long resident_kib() {
  std::ifstream in("/proc/self/statm");
  long total = 0;
  long resident = 0;
  in >> total >> resident;
  return resident * (::sysconf(_SC_PAGESIZE) / 1024);
}

struct Size {
  long memory{resident_kib()};
  std::ptrdiff_t files{entries("/proc/self/fd")};
  std::ptrdiff_t threads{entries("/proc/self/task")};
};

void use(Lease lease, unsigned dice) {
  ++acquired;
  const Deadline until = lease.deadline();
  if (dice % 3 == 0 && lease.renew() == RenewOutcome::lost && LeaseClock::now() < until) ++wrong;
  switch (dice % 5) {
    case 0: break;  // its destructor
    case 1: lease.abandon(); break;
    default:
      if (lease.release() == ReleaseOutcome::not_held && LeaseClock::now() < until) ++wrong;
  }
}

void work(Client& client, unsigned seed, const std::atomic<bool>& stop) {
  std::minstd_rand random(seed + 1);
  while (!stop) {
    const auto dice = static_cast<unsigned>(random() >> 8);
    LeaseOptions options{.ttl = Millis(90), .op_timeout = Millis(25)};
    if (dice % 7 == 0) options.wait = Millis(dice % 60);
    // As many names as a service may use in its life, and some that are fought for.
    const LeaseKey key("soak:" + std::to_string(dice % 4 == 0 ? dice % 16 : dice % 100'000));
    client.acquire(key, options)
        .match([&](Lease lease) { use(std::move(lease), dice); }, [](const Busy&) { ++busy; },
               [&](Claim claim) {
                 ++unknown;
                 if (dice % 2 == 0) (void)std::move(claim).withdraw(deadline_in(Millis(25)));
               },
               [](const Unavailable&) { ++unavailable; });
    if (dice % 64 == 0) (void)client.inspect(key);
    if (dice % 128 == 0) (void)Client("memory:soak").try_acquire(key, options);
  }
}

void report(const char* when, const Size& size) {
  std::printf("%-8s %8ld KiB %5td descriptors %4td threads | acquired %ld busy %ld unknown %ld unavailable %ld\n", when,
              size.memory, size.files, size.threads, acquired.load(), busy.load(), unknown.load(), unavailable.load());
  std::fflush(stdout);
}

// In a process of its own, so that it is not taken for growth of ours.
void shake(const ServerAddress& server, SharedPage& page) {
  FaultProxy proxy(server);
  page.counter() = proxy.port();
  std::minstd_rand random(1);
  for (;;) {
    std::this_thread::sleep_for(Millis(20 + random() % 50));
    if (random() % 4 == 0) proxy.drop_all();
    Faults faults;
    if (random() % 2 == 0) faults.up.cut_after = random() % 20'000;
    proxy.on_new(faults);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::chrono::seconds length(argc > 1 ? std::atol(argv[1]) : 60);
  RedisServer server;
  SharedPage page;
  const Children shaker(1, [&](int) { shake(server.tcp(), page); });
  if (!eventually([&] { return page.counter() != 0; })) return 1;
  Size settled;
  Size now;
  {
    Client steady(server.url_unix());
    Client shaken("redis://127.0.0.1:" + std::to_string(page.counter()));
    std::atomic<bool> stop{false};
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] { work(i % 2 == 0 ? steady : shaken, i, stop); });
    }
    const Deadline begun = LeaseClock::now();
    bool warm = false;
    while (LeaseClock::now() < begun + length) {
      std::this_thread::sleep_for(Millis(length) / 20);
      now = Size();
      // A quarter of the time for buffers, pools and the allocator to find their size.
      if (!warm && LeaseClock::now() >= begun + length / 4) {
        warm = true;
        settled = now;
      }
      report(warm ? "" : "warm-up", now);
    }
    stop = true;
  }
  now = Size();
  report("at rest", now);
  RawClient raw(server.unix_socket());
  const bool clean = eventually([&] {
    const auto left = raw.keys("soak:*");
    return std::all_of(left.begin(), left.end(), [](const std::string& key) { return key.ends_with("lease:meta"); });
  });
  const long grown = now.memory - settled.memory;
  std::printf("grown since the warm-up: %ld KiB, %td descriptors, %td threads; lost before the deadline: %ld; %s\n",
              grown, now.files - settled.files, now.threads - settled.threads, wrong.load(),
              clean ? "nothing left on the server" : "LEASES LEFT ON THE SERVER");
  const bool well = clean && wrong == 0 && acquired > 0 && unknown > 0 && grown < 4'096 && now.files <= settled.files;
  std::puts(well ? "soak: well" : "soak: NOT WELL");
  return well ? 0 : 1;
}
