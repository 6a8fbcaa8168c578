// What is left behind by those who waited.
#include <dirent.h>
#include <unistd.h>

#include <fstream>

#include "queue_support.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class QueueLeftOvers : public QueueFaults {
 protected:
  static long resident_kb() {
    std::ifstream statm("/proc/self/statm");
    long size = 0, resident = 0;
    statm >> size >> resident;
    return resident * ::sysconf(_SC_PAGESIZE) / 1'024;
  }
  static int descriptors() {
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir("/proc/self/fd"), ::closedir);
    int count = 0;
    while (::readdir(dir.get()) != nullptr) ++count;
    return count;
  }
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int crowd = 200, names = 400;
#else
constexpr int crowd = 1'000, names = 2'500;
#endif

TEST_F(QueueLeftOvers, ACrowdThatLeavesAtOnceLeavesNoEntryAndNoChannel) {
  raw.command({"SET", key, "0123456789abcdef.0123456789abcdef0123456789abcdef", "PX", "600000"});
  Client one(server.url_unix()), two(server.url_unix());
  std::stop_source source;
  std::atomic<int> acquired{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < crowd; ++i) {
      threads.emplace_back([&, &client = i % 2 == 0 ? one : two] {
        const AcquireResult result = client.acquire(key, patient_for(30s, 600s), source.get_token());
        if (result.outcome() == AcquireOutcome::acquired) ++acquired;
      });
    }
    ASSERT_TRUE(await_queued(crowd, 30s)) << queued();
    source.request_stop();
  }
  EXPECT_EQ(acquired, 0);
  // The background has its share of them: not all can leave within 25 ms.
  expect_no_queue();
  raw.del(key);
  expect_nothing_left(100ms);
}

TEST_F(QueueLeftOvers, WhoeverGivesUpWhileNothingMayBeWrittenIsNotGrantedTheLeaseLater) {
  Client holder(server.url_unix()), client(server.url_unix());
  for (const bool stopped : {false, true}) {
    Lease held = taken(holder, key);
    std::stop_source source;
    std::optional<AcquireResult> result;
    {
      const std::jthread waiter([&] {
        result = client.acquire(key, patient_for(20s, stopped ? Millis(60s) : Millis(600)), source.get_token());
      });
      ASSERT_TRUE(await_queued(1));
      raw.command({"CONFIG", "SET", "min-replicas-to-write", "1"});
      if (stopped) source.request_stop();
    }
    EXPECT_EQ(result->outcome(), AcquireOutcome::unknown) << describe(*result);
    EXPECT_EQ(queued(), 1);
    raw.command({"CONFIG", "SET", "min-replicas-to-write", "0"});
    result.reset();  // withdraws it
    EXPECT_TRUE(eventually([&] { return queued() == 0; }, 6s));
    std::optional<AcquireResult> next;
    Deadline released{}, got{};
    {
      const std::jthread waiter([&] {
        next = client.acquire(key, patient_for(20s, 10s));
        got = LeaseClock::now();
      });
      ASSERT_TRUE(await_queued(1));
      released = LeaseClock::now();
      EXPECT_EQ(held.release(), ReleaseOutcome::released);
    }
    ASSERT_EQ(next->outcome(), AcquireOutcome::acquired) << describe(*next);
    EXPECT_LT(got - released, 1s);
  }
}

TEST_F(QueueLeftOvers, ACrowdWhoseTimeIsOverLeavesNoEntryAndNoChannel) {
  raw.command({"SET", key, "0123456789abcdef.0123456789abcdef0123456789abcdef", "PX", "600000"});
  Client one(server.url_unix()), two(server.url_unix());
  std::atomic<int> acquired{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < crowd / 2; ++i) {
      threads.emplace_back([&, &client = i % 2 == 0 ? one : two] {
        const AcquireResult result = client.acquire(key, patient_for(30s, 2s));
        if (result.outcome() == AcquireOutcome::acquired) ++acquired;
      });
    }
  }
  EXPECT_EQ(acquired, 0);
  expect_no_queue();
  raw.del(key);
  expect_nothing_left(100ms);
}

TEST_F(QueueLeftOvers, TenThousandTurnsOnFreshNamesLeaveNoChannelNoMemoryAndNoDescriptor) {
  constexpr int crew_size = 4;
  Client client(server.url_unix());
  std::atomic<int> failed{0};
  const auto go_through = [&](int from, int to) {
    std::vector<std::jthread> crew;
    for (int i = 0; i < crew_size; ++i) {
      crew.emplace_back([&, from, to] {
        for (int name = from; name < to; ++name) {
          auto lease = client.acquire("fresh:" + std::to_string(name), patient_for(30s, 30s)).lease();
          lease ? void(lease->release()) : void(++failed);
        }
      });
    }
  };
  const auto settle = [&] {
    EXPECT_TRUE(eventually([&] { return channels() == 0; }, 1'500ms)) << channels() << " channels";
  };
  go_through(0, names / 5);
  settle();
  [[maybe_unused]] const long resident = resident_kb();
  const int open = descriptors();
  go_through(names / 5, names);
  settle();
  EXPECT_EQ(failed, 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LE(resident_kb(), resident + 2'048);
#endif
  EXPECT_LE(descriptors(), open);
  int leases = 0, eternal = 0;
  for (const std::string& left : raw.keys()) {
    leases += !left.ends_with("lease:meta");
    eternal += raw.pttl(left) == -1;
  }
  EXPECT_EQ(leases, 0) << "keys other than fences";
  EXPECT_EQ(eternal, 0) << "without an expiry";
}

}  // namespace
}  // namespace redlease
