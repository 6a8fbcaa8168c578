// Users who may not use what wakes waiters up: at the start, and from the middle on.
#include <time.h>

#include <mutex>

#include "queue_support.hpp"

namespace redlease {
namespace {

using namespace testing_support;

struct Unheard : Observer {
  std::atomic<int> told{0};
  void unheard(const Event& event) noexcept override {
    ++told;
    with_error = event.error != nullptr && event.error->code == Errc::denied;
  }
  std::atomic<bool> with_error{false};
};

struct Denial {
  const char* command;
  bool from_the_start;
  const char* name;
};

class QueueAndDenials : public QueueFaults, public ::testing::WithParamInterface<Denial> {
 protected:
  static constexpr int waiters = 6;

  QueueAndDenials() { raw.command({"ACL", "SETUSER", "limited", "on", ">pw", "~*", "&*", "+@all"}); }

  void deny() {
    EXPECT_EQ(raw.command({"ACL", "SETUSER", "limited", std::string("-") + GetParam().command}).text, "OK");
    // Who is subscribed stays so; only then does it matter.
    if (is("subscribe")) raw.command({"CLIENT", "KILL", "TYPE", "pubsub"});
  }
  static bool is(std::string_view command) { return command == GetParam().command; }
  // The entries of those who know that they cannot be woken.
  int resigned() {
    int count = 0;
    for (const RawReply& entry : raw.command({"ZRANGE", queue_of(key), "0", "-1"}).elements) {
      count += contains(entry.text, " - ");
    }
    return count;
  }
  std::string url() const { return "redis://limited:pw@127.0.0.1:" + std::to_string(server.port()); }
};

TEST_P(QueueAndDenials, LeaveTheOrderAsItIsAndAreToldOnce) {
  if (GetParam().from_the_start) deny();
  const auto observer = std::make_shared<Unheard>();
  std::mutex mutex;
  std::vector<int> order;
  {
    Client holder(url()), client(url(), {.observer = observer});
    Lease lease = taken(holder, key);
    std::vector<std::jthread> crew;
    for (int i = 0; i < waiters; ++i) {
      crew.emplace_back([&, i] {
        Lease mine = lease_of(client.acquire(key, patient_for(6s, 30s)));
        {
          const std::lock_guard lock(mutex);
          order.push_back(i);
        }
        EXPECT_TRUE(stay(room, std::move(mine), 2ms));
      });
      ASSERT_TRUE(await_queued(i + 1));
    }
    if (!GetParam().from_the_start) {
      deny();
      // A heartbeat is a second: then they know. While they find out, one that is not reached is passed over.
      if (is("subscribe")) {
        EXPECT_TRUE(eventually([&] { return resigned() == waiters && queued() == waiters; }));
      }
      if (is("pubsub")) {
        EXPECT_TRUE(eventually([&] { return observer->told == 1; }));
      }
    }
    const Deadline released = LeaseClock::now();
    lease.release();
    crew.clear();
    // Each turn is kept for half a lifetime of 3 s, and asked for at least every quarter of a second.
    EXPECT_LE(since(released), 6s);
  }
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(observer->told, 1);
  EXPECT_TRUE(observer->with_error);
  expect_exclusion();
  expect_nothing_left(1s);
}

TEST_P(QueueAndDenials, StopNobodyWhoTakesTurns) {
  const auto observer = std::make_shared<Unheard>();
  std::atomic<int> failed{0};
  {
    Client client(url(), {.observer = observer});
    if (GetParam().from_the_start) deny();
    Crew crew(4, [&](int) {
      auto lease = client.acquire(key, patient_for(2s, 30s)).lease();
      lease ? void(stay(room, *std::move(lease), 500us)) : void(++failed);
    });
    EXPECT_TRUE(eventually([&] { return crew.least() >= 1; }, 20s));
    if (!GetParam().from_the_start) deny();
    const int before = crew.least();
    EXPECT_TRUE(eventually([&] { return crew.least() >= before + 2; }, 20s)) << crew.least() - before;
  }
  EXPECT_EQ(failed, 0);
  EXPECT_LE(observer->told, 1);
  expect_exclusion();
  expect_nothing_left(3s);
}

TEST_P(QueueAndDenials, CostAWaiterNoProcessorAndFewQuestions) {
  if (GetParam().from_the_start) deny();
  Client client(url());
  raw.command({"SET", key, "0123456789abcdef.0123456789abcdef0123456789abcdef", "PX", "600000"});
  raw.command({"CONFIG", "RESETSTAT"});
  std::jthread denier([&] {
    std::this_thread::sleep_for(100ms);
    if (!GetParam().from_the_start) deny();
  });
  timespec before{}, after{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  busy_of(without_doubt([&] { return client.acquire(key, patient_for(6s, 1'500ms)); }));
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  denier.join();
  EXPECT_LE((after.tv_sec - before.tv_sec) * 1'000 + (after.tv_nsec - before.tv_nsec) / 1'000'000, 300) << "it spun";
  const std::string evals = raw.command({"INFO", "commandstats"}).text;
  const auto at = evals.find("cmdstat_evalsha:calls=");
  ASSERT_NE(at, evals.npos);
  EXPECT_LE(std::stoi(evals.substr(at + 22)), 40);
}

INSTANTIATE_TEST_SUITE_P(Of, QueueAndDenials,
                         ::testing::Values(Denial{"publish", true, "PublishFromTheStart"},
                                           Denial{"publish", false, "PublishInTheMiddle"},
                                           Denial{"subscribe", true, "SubscribeFromTheStart"},
                                           Denial{"subscribe", false, "SubscribeInTheMiddle"},
                                           Denial{"pubsub", true, "PubsubFromTheStart"},
                                           Denial{"pubsub", false, "PubsubInTheMiddle"}),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace redlease
