// The keeper's own life: its thread, its Client's end, and that nothing of it is left behind.
#include <filesystem>
#include <fstream>

#include "keeper_support.hpp"
#include "redlease/store/memory_store.hpp"
#include "redlease/store/upkeep.hpp"
#include "support/fake_clock.hpp"

namespace redlease {
namespace {

using namespace testing_support;

// How many threads of this process go by that name.
int threads_named(std::string_view name) {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string line;
    std::ifstream comm(task.path() / "comm");
    if (std::getline(comm, line) && line == name) ++count;
  }
  return count;
}
int keepers() { return threads_named("redlease-keeper"); }

class LifeOfAKeeper : public OnItsOwnServer {};

TEST_F(LifeOfAKeeper, BeginsWithTheFirstLeaseAndEndsASecondAfterTheLast) {
  const auto before = threads();
  Client client(server.url_tcp(), {.observer = events});
  ASSERT_TRUE(reachable(client));
  { const Lease unkept = taken(client, key); }
  EXPECT_EQ(keepers(), 0);
  std::optional<LeaseGuard> one(guarded(client, key + "1", kept(2s)));
  EXPECT_TRUE(eventually([] { return keepers() == 1; }));
  std::optional<LeaseGuard> two(guarded(client, key + "2", kept(2s)));
  one.reset();
  pause_for(1'300ms);
  EXPECT_EQ(keepers(), 1);
  two.reset();
  const Stopwatch watch;
  EXPECT_TRUE(eventually([] { return keepers() == 0; }, 10s));
  EXPECT_GT(watch.elapsed_ms(), 700ms) << "the next lease would have to start another";
  EXPECT_EQ(threads(), before);
  const LeaseGuard again = guarded(client, key + "1", kept(2s));
  const int renewals = events->renewals;
  EXPECT_TRUE(eventually([&] { return events->renewals > renewals; }));
  EXPECT_EQ(keepers(), 1);
}

// Upkeep of a store in memory, which says when it is flushed.
class ToldUpkeep final : public Upkeep {
 public:
  ToldUpkeep(std::unique_ptr<Upkeep> upkeep, std::function<void()>& flushed)
      : upkeep_(std::move(upkeep)), flushed_(flushed) {}
  bool ready(LeaseClock::duration limit) override { return upkeep_->ready(limit); }
  void add(const Task& task) override { upkeep_->add(task); }
  void flush(const Limits& limits) override {
    upkeep_->flush(limits);
    flushed_();
  }
  void wait(Deadline until, News& news) override { upkeep_->wait(until, news); }
  void wake() noexcept override { upkeep_->wake(); }

 private:
  std::unique_ptr<Upkeep> upkeep_;
  std::function<void()>& flushed_;
};

class StoreOfToldUpkeeps final : public SpyStore {
 public:
  StoreOfToldUpkeeps() : SpyStore(std::make_shared<MemoryStore>()) {}
  std::function<void()> flushed{[] {}};
  std::unique_ptr<Upkeep> upkeep() override { return std::make_unique<ToldUpkeep>(SpyStore::upkeep(), flushed); }
};

TEST(LifeOfAKeepersThread, IsNotOverWhereALeaseComesAtItsVeryEnd) {
  const auto store = std::make_shared<StoreOfToldUpkeeps>();
  const auto events = std::make_shared<KeeperEvents>();
  Client client(store, {.observer = events});
  std::optional<LeaseGuard> late;
  std::atomic<bool> armed{false}, taken_late{false};
  // Between the thread's last look at what there is to do and its end.
  store->flushed = [&] {
    if (!armed.exchange(false)) return;
    late.emplace(guarded(client, "late", kept(600ms)));
    taken_late = true;
  };
  { const LeaseGuard first = guarded(client, "first", kept(30s)); }
  pause_for(900ms);  // of the second that it lingers
  armed = true;
  ASSERT_TRUE(eventually([&] { return taken_late.load(); }));
  EXPECT_TRUE(eventually([&] { return events->renewals >= 3; })) << "nobody renews it";
  EXPECT_TRUE(late->held());
  late.reset();
}

TEST_F(LifeOfAKeeper, LeavesNeitherThreadsNorDescriptorsHoweverOftenItIsLived) {
  const auto before_threads = threads();
  const auto before_files = open_files();
  {
    std::vector<std::jthread> crew;
    std::atomic<int> cycles{0};
    for (int t = 0; t < 4; ++t) {
      crew.emplace_back([&, t] {
        const std::string mine = key + std::to_string(t);
        for (const Stopwatch watch; watch.elapsed_ms() < 3s; ++cycles) {
          Client client(t % 2 == 0 ? server.url_unix() : server.url_tcp());
          try {
            std::optional<LeaseGuard> guard(guarded(client, mine, kept(cycles % 2 == 0 ? 12ms : 600ms)));
            if (cycles % 3 == 0) (void)guard->stop_token();
            if (cycles % 16 == 0) pause_for(15ms);
            if (cycles % 5 == 0) guard.emplace(guarded(client, mine + "too", kept(600ms)));
          } catch (const AcquireError&) {
            // So short a ttl may end before it has begun.
          }
        }
      });
    }
    crew.clear();
    EXPECT_GT(cycles, 30);
  }
  EXPECT_TRUE(eventually([&] { return threads() == before_threads; })) << threads();
  EXPECT_EQ(open_files(), before_files);
  EXPECT_TRUE(eventually([&] { return truth.keys(key + "?").empty(); }));
}

// Nobody watches any more: whoever asks first tells all that is due, the request to stop ahead of it and the loss.
TEST(LeasesWithoutTheirClient, AreLostInTheEyesOfWhoeverAsksFirst) {
  std::optional<Client> client(std::in_place, "memory:");
  Told told;
  LeaseOptions options{.ttl = 400ms, .stop_before = 100ms};
  options.on_lost = told.recorder();
  const LeaseGuard guard = guarded(*client, "lease", options);
  const StopTime stop(guard.stop_token());
  client.reset();
  std::this_thread::sleep_for(guard.deadline() - LeaseClock::now());
  EXPECT_EQ(told.times, 0) << "who told it?";
  EXPECT_FALSE(guard.held());
  EXPECT_EQ(told.times, 1);
  EXPECT_TRUE(stop.stopped());
  EXPECT_FALSE(guard.held());
  EXPECT_EQ(told.times, 1);
}

enum class Server { up, stands_still, gone };

class EndOfAClient : public LifeOfAKeeper, public ::testing::WithParamInterface<Server> {
 protected:
  static constexpr Millis op_timeout = 300ms, ttl = 1s;
};
INSTANTIATE_TEST_SUITE_P(Where, EndOfAClient, ::testing::Values(Server::up, Server::stands_still, Server::gone),
                         [](const auto& of) {
                           return of.param == Server::up ? "Up" : of.param == Server::gone ? "Gone" : "StandsStill";
                         });

TEST_P(EndOfAClient, IsNotHeldUpByAHundredLeasesWhichAreThenLostAtTheirDeadlines) {
  FaultProxy proxy(server.tcp());
  Millis took = 1h;
  for (int i = 0; i < 3 && took > op_timeout + 200ms; ++i) {
    proxy.refuse(false);
    truth.flushall();
    std::optional<Client> client(std::in_place, proxy.url());
    ASSERT_TRUE(reachable(*client));
    std::vector<LeaseGuard> guards;
    LeaseOptions options{.ttl = ttl, .op_timeout = op_timeout};
    Told told;
    options.on_lost = told.recorder();
    for (int n = 0; n < 100; ++n) guards.push_back(guarded(*client, key + std::to_string(n), options));
    const std::stop_token asked_before = guards.front().stop_token();
    std::optional<Stopped> stopped;
    if (GetParam() == Server::stands_still) stopped.emplace(server);
    if (GetParam() == Server::gone) {
      proxy.refuse();
      proxy.drop_all();
    }
    if (GetParam() != Server::up) pause_for(400ms);  // renewals are in trouble
    const Stopwatch watch;
    client.reset();
    took = watch.elapsed_ms();
    stopped.reset();
    proxy.refuse(false);

    // Released as long as they are held; lost at the deadline, as whoever asks is told.
    LeaseGuard& first = guards.front();
    LeaseGuard& second = guards[1];
    const bool in_time = second.held();
    const ReleaseOutcome outcome = second.release();
    if (in_time && GetParam() != Server::stands_still) {
      EXPECT_TRUE(outcome == ReleaseOutcome::released || LeaseClock::now() > second.deadline()) << to_string(outcome);
      EXPECT_FALSE(truth.exists(second.key().str()));
    }
    EXPECT_TRUE(eventually([&] { return !first.held(); }));
    EXPECT_GE(LeaseClock::now(), first.deadline());
    EXPECT_EQ(first.loss(), LossCause::deadline);
    EXPECT_TRUE(first.stop_token().stop_requested());
    EXPECT_TRUE(asked_before.stop_requested());
    EXPECT_GE(told.times, 1);
    guards.clear();
    EXPECT_LE(told.times, 100);
    EXPECT_TRUE(eventually([&] { return truth.keys(key + "*").size() <= 100; }));
  }
  EXPECT_LE(took, op_timeout + 200ms);
}

}  // namespace
}  // namespace redlease
