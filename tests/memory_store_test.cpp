#include "redlease/store/memory_store.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <limits>
#include <string>

#include "store_suite.hpp"
#include "support/fake_clock.hpp"

namespace redlease {
namespace {

using namespace std::chrono_literals;
using testing_support::FakeClock;

class MemoryWorld {
 public:
  LeaseStore& store() { return store_; }
  std::string key() { return "key-" + std::to_string(++keys_); }
  void advance(Millis by) { clock_.advance(by); }
  Deadline now() { return clock_.now(); }

 private:
  FakeClock clock_;
  MemoryStore store_{clock_};
  int keys_{0};
};

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(Memory, LeaseStoreSuite, MemoryWorld);

namespace {

constexpr std::uint64_t highest = (std::uint64_t{1} << 53) - 2;

Acquisition take(LeaseStore& store, std::string_view key, std::string_view token, Millis ttl = 1min,
                 std::optional<FencingToken> floor = {}) {
  return store.acquire({.key = key, .token = token, .ttl = ttl, .floor = floor, .holder = "h:1", .label = {}}, {});
}
bool takes(LeaseStore& store, std::string_view key, std::string_view token) {
  return std::holds_alternative<Granted>(take(store, key, token));
}
std::uint64_t fence_of(const Acquisition& acquisition) {
  return static_cast<std::uint64_t>(std::get<Granted>(acquisition).fence);
}

// The exit status of a forked child that runs this.
int in_a_child(auto run) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(run());
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(MemoryStore, ALeaseEndsExactlyWithItsTtl) {
  FakeClock clock;
  MemoryStore store(clock);
  const auto granted = take(store, "k", "a", 10s);
  EXPECT_EQ(std::get<Granted>(granted).counted_from, clock.now());
  clock.advance(10s - 1ns);
  const auto busy = take(store, "k", "b");
  ASSERT_TRUE(std::holds_alternative<Busy>(busy));
  EXPECT_EQ(std::get<Busy>(busy).remaining, 1ms) << "never 0 while it is held";
  EXPECT_EQ(store.inspect("k", {}).value().held_for, 9'999ms);
  clock.advance(1ns);
  EXPECT_FALSE(store.inspect("k", {}).value().held);
  EXPECT_TRUE(takes(store, "k", "b"));
}

TEST(MemoryStore, ARenewalCountsFromNow) {
  FakeClock clock;
  MemoryStore store(clock);
  take(store, "k", "a", 10s);
  clock.advance(4s);
  EXPECT_EQ(store.renew("k", "a", 10s, {}).counted_from, clock.now());
  EXPECT_EQ(store.inspect("k", {}).value().remaining, 10s);
  EXPECT_EQ(store.inspect("k", {}).value().held_for, 4s) << "since the grant, not the renewal";
}

TEST(MemoryStore, ATtlForEverDoesNotOverflow) {
  FakeClock clock;
  MemoryStore store(clock);
  take(store, "k", "a", forever);
  clock.advance(24h);
  EXPECT_TRUE(store.inspect("k", {}).value().held);
  EXPECT_EQ(store.renew("k", "a", forever, {}).outcome, RenewOutcome::renewed);
}

TEST(MemoryStore, AFirstFenceIsTheWallClock) {
  using std::chrono::system_clock;
  MemoryStore store;
  const auto before = std::chrono::floor<std::chrono::seconds>(system_clock::now().time_since_epoch()).count();
  const auto fence = fence_of(take(store, "k", "a"));
  const auto after = std::chrono::floor<std::chrono::seconds>(system_clock::now().time_since_epoch()).count();
  EXPECT_GE(fence >> 20, static_cast<std::uint64_t>(before));
  EXPECT_LE(fence >> 20, static_cast<std::uint64_t>(after));
}

TEST(MemoryStore, AFenceThatCannotGrowIsRefusedAndNothingGranted) {
  FakeClock clock;
  MemoryStore store(clock);
  EXPECT_EQ(fence_of(take(store, "k", "a", 1min, FencingToken{highest - 1})), highest);
  EXPECT_EQ(fence_of(take(store, "k", "a")), highest) << "ours already needs no new fence";
  store.release("k", "a", {});
  const auto refused = take(store, "k", "b");
  ASSERT_TRUE(std::holds_alternative<Error>(refused));
  EXPECT_EQ(std::get<Error>(refused).code, Errc::server_error);
  EXPECT_EQ(std::get<Error>(refused).detail,
            "the fence of \"k\" in memory: cannot grow beyond 2^53 - 2; nothing was granted. Choose another name");
  EXPECT_FALSE(store.inspect("k", {}).value().held);
  for (const std::uint64_t floor : {highest, std::numeric_limits<std::uint64_t>::max()}) {
    EXPECT_TRUE(std::holds_alternative<Error>(take(store, "other", "a", 1min, FencingToken{floor}))) << floor;
  }
}

TEST(MemoryStore, ForgetsFreeNamesInTheEndButTheirFencesStillGrow) {
  FakeClock clock;
  MemoryStore store(clock);
  const std::uint64_t raised = highest - 100;
  take(store, "held", "a", 24h);
  take(store, "raised", "a", 1s, FencingToken{raised});
  ASSERT_TRUE(store.fenced_set("resource", "v", FencingToken{7}, {}).value().accepted);
  const auto first = fence_of(take(store, "free", "a", 1s));
  clock.advance(2s);
  for (int i = 0; i < 3'000; ++i) {
    const std::string name = "name-" + std::to_string(i);
    take(store, name, "a");
    store.release(name, "a", {});
  }
  EXPECT_EQ(store.inspect("free", {}).value().fence, FencingToken{0}) << "forgotten";
  const auto again = fence_of(take(store, "free", "b"));
  EXPECT_GT(again, first);
  EXPECT_LT(again, raised) << "a floor of one name must not raise the others";
  EXPECT_GT(fence_of(take(store, "raised", "b")), raised);
  EXPECT_TRUE(store.inspect("held", {}).value().held);
  EXPECT_FALSE(store.fenced_set("resource", "v", FencingToken{6}, {}).value().accepted);
}

TEST(MemoryStore, ErrorsNameTheKeyTheStoreAndWhatToDo) {
  MemoryStore store;
  ASSERT_TRUE(store.fenced_set("k\n", "v", FencingToken{1}, {}).value().accepted);
  EXPECT_EQ(
      std::get<Error>(take(store, "k\n", "a")).detail,
      "the key \"k\\x0a\" in memory: holds a fenced value, not a lease; nothing was changed. Choose another name");
  const auto late = store.ping({.deadline = deadline_in(-1ms), .stop = {}});
  EXPECT_EQ(late.error().detail, "a call to memory: was not begun; nothing was changed");
}

TEST(MemoryStore, AForkedChildStartsEmptyAndLeavesTheParentAlone) {
  MemoryStore store;
  ASSERT_TRUE(takes(store, "k", "a"));
  EXPECT_EQ(in_a_child([&] { return !store.inspect("k", {}).value().held && takes(store, "k", "b") ? 0 : 1; }), 0);
  EXPECT_EQ(store.renew("k", "a", 1min, {}).outcome, RenewOutcome::renewed);
}

TEST(SharedMemoryStore, OneNameIsOneStore) {
  const auto one = MemoryStore::shared("jobs");
  const auto same = MemoryStore::shared("jobs");
  const auto other = MemoryStore::shared("mail");
  ASSERT_TRUE(takes(*one, "k", "a"));
  EXPECT_FALSE(takes(*same, "k", "b"));
  EXPECT_TRUE(takes(*other, "k", "b"));
  MemoryStore own;
  EXPECT_TRUE(takes(own, "k", "b"));
}

TEST(SharedMemoryStore, LivesAsLongAsSomebodyHasIt) {
  auto first = MemoryStore::shared("passing");
  auto second = MemoryStore::shared("passing");
  ASSERT_TRUE(takes(*first, "k", "a"));
  first.reset();
  EXPECT_FALSE(takes(*second, "k", "b"));
  second.reset();
  EXPECT_TRUE(takes(*MemoryStore::shared("passing"), "k", "b"));
}

TEST(SharedMemoryStore, InAForkedChildOneNameIsStillOneStore) {
  const auto inherited = MemoryStore::shared("forked");
  ASSERT_TRUE(takes(*inherited, "k", "a"));
  EXPECT_EQ(in_a_child([&] {
              if (!takes(*inherited, "k", "b")) return 1;
              return takes(*MemoryStore::shared("forked"), "k", "c") ? 2 : 0;
            }),
            0);
}

TEST(MemoryStore, TellsWhereItKeepsItsLeases) {
  EXPECT_EQ(MemoryStore().server(), "memory:");
  EXPECT_EQ(MemoryStore::shared("jobs")->server(), "memory:jobs");
}

}  // namespace
}  // namespace redlease
