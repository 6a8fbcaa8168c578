// What a program may do when it is told of a loss, on whichever thread that is.
#include <random>

#include "keeper_support.hpp"
#include "support/fake_clock.hpp"

namespace redlease {
namespace {

using namespace testing_support;

// Both ways of being told.
enum class By { stop_token, on_lost };

class ToldOfALoss : public ::testing::TestWithParam<By> {
 protected:
  // A guard that is lost in a moment, upon which `act` is called once.
  void hold(Client& client, const std::function<void()>& acting) {
    const auto act = [this, acting] {
      acting();
      over = true;
    };
    LeaseOptions options = watched(100ms);
    if (GetParam() == By::on_lost) options.on_lost = [act](LossCause) { act(); };
    const std::scoped_lock lock(mutex);
    guard.emplace(guarded(client, key, options));
    if (GetParam() == By::stop_token) stop.emplace(guard->stop_token(), act);
  }
  bool soon() {
    return eventually([&] { return over.load(); }) && done;
  }

  RedisServer& server{shared_server()};
  RawClient truth{server.tcp()};
  const std::string key{fresh_key()};
  std::atomic<bool> done{false}, over{false};
  std::mutex mutex;  // what acts is called when all is set up
  std::optional<LeaseGuard> guard;
  std::optional<std::stop_callback<std::function<void()>>> stop;
};
INSTANTIATE_TEST_SUITE_P(By, ToldOfALoss, ::testing::Values(By::stop_token, By::on_lost),
                         [](const auto& of) { return of.param == By::on_lost ? "OnLost" : "StopToken"; });

TEST_P(ToldOfALoss, MayDestroyTheGuard) {
  Client client(server.url_unix());
  hold(client, [&] {
    const std::scoped_lock lock(mutex);
    guard.reset();
    done = true;
  });
  ASSERT_TRUE(soon());
  EXPECT_FALSE(truth.exists(key));
  EXPECT_TRUE(client.ping().has_value());
}

TEST_P(ToldOfALoss, MayReleaseTheGuard) {
  Client client(server.url_unix());
  std::atomic<ReleaseOutcome> outcome{};
  hold(client, [&] {
    const std::scoped_lock lock(mutex);
    outcome = guard->release();
    done = true;
  });
  ASSERT_TRUE(soon());
  EXPECT_EQ(outcome, ReleaseOutcome::not_held);
  EXPECT_FALSE(truth.exists(key));
}

TEST_P(ToldOfALoss, MayAcquireAnother) {
  Client client(server.url_unix());
  hold(client, [&] {
    const std::scoped_lock lock(mutex);
    guard.emplace(guarded(client, key + "next", kept(30s)));
    done = guard->held();
  });
  ASSERT_TRUE(soon());
  const std::scoped_lock lock(mutex);
  EXPECT_TRUE(guard->held());
  EXPECT_TRUE(truth.exists(key + "next"));
}

TEST_P(ToldOfALoss, MayMoveAnotherOverTheGuard) {
  Client client(server.url_unix());
  hold(client, [&] {
    const std::scoped_lock lock(mutex);
    *guard = guarded(client, key + "next", kept(30s));
    done = guard->held();
  });
  ASSERT_TRUE(soon());
}

TEST_P(ToldOfALoss, MayDestroyTheClient) {
  std::optional<Client> client(std::in_place, server.url_unix());
  hold(*client, [&] {
    const std::scoped_lock lock(mutex);
    client.reset();
    done = true;
  });
  ASSERT_TRUE(soon());
  const std::scoped_lock lock(mutex);
  EXPECT_FALSE(guard->held());
  EXPECT_TRUE(guard->stop_token().stop_requested());
  guard.reset();
}

TEST_P(ToldOfALoss, MayDestroyTheClientAndThenTheGuard) {
  std::optional<Client> client(std::in_place, server.url_unix());
  hold(*client, [&] {
    const std::scoped_lock lock(mutex);
    client.reset();
    guard.reset();
    done = true;
  });
  ASSERT_TRUE(soon());
}

TEST_P(ToldOfALoss, MayDestroyTheGuardAndThenTheClient) {
  std::optional<Client> client(std::in_place, server.url_unix());
  hold(*client, [&] {
    const std::scoped_lock lock(mutex);
    guard.reset();
    client.reset();
    done = true;
  });
  ASSERT_TRUE(soon());
}

TEST(OnLost, ThatIsSlowDelaysNoOtherLeasesSignal) {
  FakeClock clock;
  Client client("memory:", {.clock = &clock});
  unless_stalled(10ms, [&]() -> std::string {
    std::atomic<int> finished{0};
    std::vector<std::unique_ptr<Told>> told;
    std::vector<LeaseGuard> guards;
    std::vector<std::unique_ptr<StopTime>> stops;
    for (int i = 0; i < 20; ++i) {
      LeaseOptions options = watched(10s);
      told.push_back(std::make_unique<Told>());
      if (i == 7) {
        options.on_lost = [&](LossCause) {
          pause_for(2s);
          ++finished;
        };
      } else {
        options.on_lost = told.back()->recorder();
      }
      guards.push_back(guarded(client, "lease " + std::to_string(i), options));
      stops.push_back(std::make_unique<StopTime>(guards.back().stop_token()));
    }
    const Deadline begun = LeaseClock::now();
    clock.advance(10s);
    std::string fault;
    for (std::size_t i = 0; i < told.size(); ++i) {
      if (!eventually([&] { return stops[i]->stopped() && (i == 7 || told[i]->times == 1); })) return "not told";
      fault += fault_of("a stop", stops[i]->at(), begun, 250ms);
      if (i != 7) fault += fault_of("an on_lost", told[i]->at, begun, 250ms);
    }
    EXPECT_EQ(finished, 0) << "they waited for the slow one";
    const Stopwatch watch;
    guards.clear();  // waits for the slow one, which uses what dies with this scope
    EXPECT_EQ(finished, 1);
    return fault;
  });
}

TEST(OnLost, ManyThatAreSlowDelayNoStop) {
  constexpr int crowd = 300;
  FakeClock clock;
  Client client("memory:", {.clock = &clock});
  unless_stalled(50ms, [&]() -> std::string {
    std::atomic<bool> over{false};
    std::atomic<int> begun{0}, finished{0};
    std::vector<LeaseGuard> guards;
    std::vector<std::unique_ptr<StopTime>> stops;
    for (int i = 0; i < crowd; ++i) {
      LeaseOptions options = watched(10s);
      options.on_lost = [&](LossCause) {
        ++begun;
        while (!over) pause_for(5ms);
        ++finished;
      };
      guards.push_back(guarded(client, "lease " + std::to_string(i), options));
      stops.push_back(std::make_unique<StopTime>(guards.back().stop_token()));
    }
    const Deadline at = LeaseClock::now();
    clock.advance(10s);
    std::string fault;
    for (const auto& stop : stops) {
      if (!eventually([&] { return stop->stopped(); }, 5s)) fault = "not stopped";
      if (fault.empty()) fault = fault_of("a stop", stop->at(), at, 500ms);
    }
    EXPECT_EQ(finished, 0);
    over = true;
    EXPECT_TRUE(eventually([&] { return finished == crowd; })) << "those that had to wait came to nothing";
    EXPECT_EQ(begun, crowd);
    return fault;
  });
}

TEST(OnLost, ThatThrowsHarmsNobody) {
  Client client("memory:");
  std::atomic<int> thrown{0};
  LeaseOptions options = watched(50ms);
  options.on_lost = [&](LossCause) {
    ++thrown;
    throw std::runtime_error("the program's own");
  };
  const LeaseGuard one = guarded(client, "one", options);
  const LeaseGuard two = guarded(client, "two", options);
  const LeaseGuard kept_on = guarded(client, "kept", kept(300ms));
  EXPECT_TRUE(eventually([&] { return thrown == 2; }));
  EXPECT_TRUE(one.stop_token().stop_requested());
  EXPECT_TRUE(kept_on.held());
}

// What it captured is freed the moment the guard is destroyed, around the time of the loss.
TEST(OnLost, IsNeverCalledOnceTheGuardIsGone) {
  Client client("memory:");
  std::atomic<int> wrong{0}, called{0}, uncalled{0};
  {
    std::vector<std::jthread> crew;
    for (int t = 0; t < 4; ++t) {
      crew.emplace_back([&, t] {
        std::mt19937 random(std::random_device{}());
        for (int i = 0; i < 150; ++i) {
          struct Captured {
            std::atomic<bool> alive{true};
            std::atomic<int> calls{0};
          };
          auto captured = std::make_unique<Captured>();
          LeaseOptions options = watched(12ms);
          options.on_lost = [&, mine = captured.get()](LossCause) {
            pause_for(100us);  // still under way when the guard goes
            if (!mine->alive || ++mine->calls > 1) ++wrong;
          };
          try {
            const LeaseGuard guard(client, "lease " + std::to_string(t), options);
            std::this_thread::sleep_until(std::chrono::steady_clock::now() + (guard.deadline() - LeaseClock::now()) +
                                          std::chrono::microseconds(static_cast<int>(random() % 600) - 200));
          } catch (const AcquireError&) {
            continue;  // granted too late to be of use
          }
          ++(captured->calls == 0 ? uncalled : called);
          captured->alive = false;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(called, 0) << "the test is always too early";
  EXPECT_GT(uncalled + called, 100);
}

}  // namespace
}  // namespace redlease
