#include "wire/resolve.hpp"

#include <netdb.h>

#include <atomic>
#include <cstdlib>
#include <stop_token>
#include <thread>

#include "listener.hpp"

namespace redlease {
inline namespace v0 {
namespace {

using namespace std::chrono_literals;

// A name server that keeps everybody waiting until it is told to answer.
std::atomic<bool> answering{false};
std::atomic<int> asked{0};
std::atomic<int> answered{0};

Found slow_lookup(const std::string&) {
  ++asked;
  answering.wait(false);
  Found found;
  found.addresses.push_back(ip_address("192.0.2.1", 0));
  found.addresses.push_back(ip_address("2001:db8::1", 0));
  ++answered;
  return found;
}

class SlowResolver : public testing::Test {
 public:
  SlowResolver() {
    answering = false;
    asked = answered = 0;
  }
  ~SlowResolver() override { answer(); }

 protected:
  static void answer() {
    answering = true;
    answering.notify_all();
    EXPECT_TRUE(eventually([] { return asked == answered; }));
  }
};

TEST(Resolve, TakesLiteralsWithoutAsking) {
  const auto v4 = resolve("127.0.0.1", 80, within(0ms), slow_lookup);
  ASSERT_TRUE(v4.has_value()) << v4.error().detail;
  ASSERT_EQ(v4.value().size(), 1U);
  EXPECT_EQ(numeric_host(v4.value()[0]), "127.0.0.1");
  const auto v6 = resolve("::1", 80, within(0ms), slow_lookup);
  ASSERT_TRUE(v6.has_value()) << v6.error().detail;
  EXPECT_EQ(numeric_host(v6.value()[0]), "::1");
}

TEST(Resolve, TellsWhichNameHasNoAddressAndWhy) {
  const auto none = resolve("nowhere.test", 80, within(5s), [](const std::string&) {
    return Found{EAI_NONAME, 0, {}};
  });
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, Errc::resolve_failed);
  EXPECT_EQ(none.error().detail, std::string("the host name 'nowhere.test' could not be resolved: ") +
                                     ::gai_strerror(EAI_NONAME) + "; nothing was sent");
  const auto broken = resolve("x.test", 80, within(5s), [](const std::string&) {
    return Found{EAI_SYSTEM, EMFILE, {}};
  });
  ASSERT_FALSE(broken.has_value());
  EXPECT_NE(broken.error().detail.find("Too many open files"), std::string::npos) << broken.error().detail;
  EXPECT_FALSE(resolve("empty.test", 80, within(5s), [](const std::string&) { return Found{}; }).has_value());
}

TEST_F(SlowResolver, IsLeftBehindAtTheDeadline) {
  expect_takes(100ms, 150ms, [] {
    const auto late = resolve("slow.test", 80, within(100ms), slow_lookup);
    ASSERT_FALSE(late.has_value());
    EXPECT_EQ(late.error().code, Errc::timed_out);
    EXPECT_NE(late.error().detail.find("'slow.test'"), std::string::npos);
  });
  EXPECT_TRUE(eventually([] { return asked >= 1; }));
}

TEST_F(SlowResolver, IsLeftBehindAtAStop) {
  std::stop_source source;
  Result<std::vector<SocketAddress>> result = Error{};
  std::jthread waiting([&] { result = resolve("slow.test", 80, within(30s, source.get_token()), slow_lookup); });
  ASSERT_TRUE(eventually([] { return asked == 1; }));
  const Stopwatch watch;
  source.request_stop();
  waiting.join();
  EXPECT_LT(watch.elapsed_ms(), 1s);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, Errc::cancelled);
}

TEST_F(SlowResolver, IsAskedOnceByAllWhoWantTheSameNameAtOnce) {
  std::atomic<int> got{0};
  {
    std::vector<std::jthread> threads;
    for (std::uint16_t port = 1; port <= 40; ++port) {
      threads.emplace_back([&got, port] {
        const auto result = resolve("shared.test", port, within(30s), slow_lookup);
        ASSERT_TRUE(result.has_value()) << result.error().detail;
        EXPECT_EQ(numeric_host(result.value().at(1)), "2001:db8::1");
        EXPECT_EQ(reinterpret_cast<const sockaddr_in&>(result.value()[0].storage).sin_port, htons(port));
        ++got;
      });
    }
    ASSERT_TRUE(eventually([] { return asked >= 1; }));
    answer();
  }
  EXPECT_EQ(got, 40);
  EXPECT_LT(asked, 40);
}

TEST_F(SlowResolver, HangsInSixteenThreadsAtMost) {
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(resolve("hung" + std::to_string(i) + ".test", 80, within(0ms), slow_lookup).error().code,
              Errc::timed_out);
  }
  const auto refused = resolve("one.more.test", 80, within(30s), slow_lookup);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::resolve_failed);
  EXPECT_NE(refused.error().detail.find("16 other lookups"), std::string::npos) << refused.error().detail;
  EXPECT_EQ(resolve("hung3.test", 80, within(0ms), slow_lookup).error().code, Errc::timed_out) << "it may still wait";

  EXPECT_TRUE(eventually([] { return asked == 16; }));
  answer();
  EXPECT_TRUE(eventually([] { return resolve("one.more.test", 80, within(5s), slow_lookup).has_value(); }));
}

TEST_F(SlowResolver, HangingWhileTheProcessExitsCrashesNothing) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        (void)resolve("slow.test", 80, within(1ms), slow_lookup);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace v0
}  // namespace redlease
