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

}  // namespace
}  // namespace redlease
