// More waiters than inboxes.
#include <mutex>

#include "queue_support.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class QueueBeyondItsInboxes : public QueueFaults, public ::testing::WithParamInterface<std::size_t> {
 protected:
  static constexpr int waiters = 32;
  ClientOptions options() const {
    ClientOptions with;
    with.max_inboxes = GetParam();
    return with;
  }
};
INSTANTIATE_TEST_SUITE_P(Of, QueueBeyondItsInboxes, ::testing::Values(0, 1, 4));

TEST_P(QueueBeyondItsInboxes, AllGetItInTheirOrderAndSoon) {
  Client holder(server.url_unix()), client(server.url_unix(), options());
  Lease lease = taken(holder, key);
  std::mutex mutex;
  std::vector<int> order, in_order;
  std::vector<std::jthread> crew;
  for (int i = 0; i < waiters; ++i) {
    in_order.push_back(i);
    crew.emplace_back([&, i] {
      Lease mine = lease_of(client.acquire(key, patient_for(30s, 60s)));
      {
        const std::lock_guard lock(mutex);
        order.push_back(i);
      }
      EXPECT_TRUE(stay(room, std::move(mine)));
    });
    ASSERT_TRUE(await_queued(i + 1));
  }
  EXPECT_LE(channels(), GetParam() + 1);
  const Deadline at = LeaseClock::now();
  lease.release();
  crew.clear();
  EXPECT_LE(since(at), 2s) << "a heartbeat is 5 s: they were woken up";
  EXPECT_EQ(order, in_order);
  expect_exclusion();
  expect_nothing_left(1s);
  expect_no_queue();
}

TEST_P(QueueBeyondItsInboxes, TheyTakeTurnsForLong) {
  std::atomic<int> failed{0};
  {
    Client client(server.url_unix(), options());
    Crew crew(waiters, [&](int) {
      auto lease = client.acquire(key, patient_for(30s, 30s)).lease();
      lease ? void(stay(room, *std::move(lease))) : void(++failed);
    });
    EXPECT_TRUE(eventually([&] { return crew.least() >= 15; }, 20s)) << crew.least();
    EXPECT_LE(channels(), GetParam() + 1);
  }
  EXPECT_EQ(failed, 0);
  expect_exclusion();
  expect_nothing_left(1s);
  expect_no_queue();
}

TEST_P(QueueBeyondItsInboxes, OnesStopIsNoOthersBusiness) {
  Client holder(server.url_unix()), client(server.url_unix(), options());
  Lease lease = taken(holder, key);
  std::atomic<int> got{0}, stopped{0};
  std::stop_source source;
  std::vector<std::jthread> crew;
  for (int i = 0; i < waiters; ++i) {
    crew.emplace_back([&, i] {
      AcquireResult result =
          client.acquire(key, patient_for(30s, 60s), i % 2 == 0 ? source.get_token() : std::stop_token{});
      auto mine = std::move(result).lease();
      if (mine) ++got;
      if (mine) stay(room, *std::move(mine));
      if (!mine) ++stopped;
    });
  }
  ASSERT_TRUE(await_queued(waiters));
  source.request_stop();
  ASSERT_TRUE(eventually([&] { return stopped == waiters / 2; }));
  const Deadline at = LeaseClock::now();
  lease.release();
  crew.clear();
  EXPECT_LE(since(at), 2s);
  EXPECT_EQ(got, waiters / 2);
  expect_exclusion();
  expect_nothing_left(1s);
  expect_no_queue();
}

struct Connects : Observer {
  std::atomic<int> all{0};
  void connected(const Event&) noexcept override { ++all; }
};

TEST_F(QueueFaults, ASharedInboxEndsWithItsWaitersAlsoWhereTheServerIsGone) {
  const auto connects = std::make_shared<Connects>();
  Client holder(server.url_unix()), client(server.url_unix(), {.max_inboxes = 0, .observer = connects});
  Lease lease = taken(holder, key);
  std::stop_source source;
  {
    const std::jthread waiter([&] {
      auto claim = client.acquire(key, patient_for(30s, 60s), source.get_token()).claim();
      if (claim) std::move(*claim).abandon();  // else its withdrawal is tried again and again
    });
    ASSERT_TRUE(eventually([&] { return channels() == 1; }));
    server.kill9();
    ASSERT_TRUE(eventually([&] { return connects->all >= 5; }));  // again and again
    source.request_stop();
  }
  std::this_thread::sleep_for(2s);
  const int before = connects->all;
  std::this_thread::sleep_for(3s);
  EXPECT_EQ(connects->all, before);
  lease.abandon();
}

TEST_F(QueueFaults, WhoeverComesToASharedInboxThatMayNotSubscribeHasAPlaceAtOnce) {
  raw.command({"ACL", "SETUSER", "deaf", "on", ">pw", "~*", "&*", "+@all", "-subscribe"});
  Client holder(server.url_unix());
  Client client("redis://deaf:pw@127.0.0.1:" + std::to_string(server.port()), {.max_inboxes = 0});
  Lease lease = taken(holder, key);
  std::stop_source source;
  std::vector<std::jthread> crew;
  for (int i = 1; i <= 3; ++i) {
    const Deadline at = LeaseClock::now();
    crew.emplace_back([&] { (void)client.acquire(key, patient_for(6s, 60s, 2s), source.get_token()); });
    ASSERT_TRUE(await_queued(i));
    EXPECT_LT(since(at), 500ms) << i;
  }
  source.request_stop();
}

}  // namespace
}  // namespace redlease
