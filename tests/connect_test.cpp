#include "wire/connect.hpp"

#include <fcntl.h>
#include <netinet/tcp.h>

#include <filesystem>
#include <iterator>
#include <stop_token>
#include <thread>

#include "listener.hpp"

namespace redlease {
inline namespace v0 {
namespace {

using namespace std::chrono_literals;

Error connect_error(const std::string& url, const Limits& limits = within(5s)) {
  auto result = connect(parse_endpoint(url), limits);
  if (!result.has_value()) return result.error();
  ADD_FAILURE() << "connected: " << url;
  return {};
}

bool says(const Error& error, const std::string& part) { return error.detail.find(part) != error.detail.npos; }

void expect_talks(const std::string& url, const Listener& listener) {
  auto transport = connect(parse_endpoint(url), within(5s));
  ASSERT_TRUE(transport.has_value()) << transport.error().detail;
  const OwnedFd peer = listener.accept();
  EXPECT_EQ(transport.value()->write("ping", within(5s)).bytes, 4U);
  char bytes[8];
  EXPECT_EQ(::recv(peer.get(), bytes, sizeof bytes, 0), 4);
  EXPECT_EQ(::send(peer.get(), "+OK", 3, MSG_NOSIGNAL), 3);
  EXPECT_EQ(transport.value()->read(bytes, within(5s)).bytes, 3U);
}

TEST(Connect, ReachesIPv4) {
  const Listener listener;
  expect_talks(listener.url(), listener);
}

TEST(Connect, ReachesIPv6) {
  const Listener listener(ip_address("::1", 0));
  expect_talks("redis://[::1]:" + std::to_string(listener.port()), listener);
}

TEST(Connect, ReachesANameWithOneAddressThatTakesIt) {
  const Listener listener;
  expect_talks("redis://localhost:" + std::to_string(listener.port()), listener);
}

TEST(Connect, ReachesUnixSockets) {
  const TempDir dir;
  const Listener listener(unix_address(dir.path() + "/s.sock"));
  expect_talks("unix://" + dir.path() + "/s.sock", listener);
}

TEST(Connect, TellsAClosedPortAndThatNothingWasSent) {
  const ClosedPort closed;
  const Error error = connect_error(closed.url());
  EXPECT_EQ(error.code, Errc::connect_failed);
  EXPECT_EQ(error.detail, "cannot connect to " + closed.url() +
                              "/0: Connection refused; nothing was sent. Is the server running there?");
}

TEST(Connect, TellsAMissingUnixSocket) {
  const TempDir dir;
  const Error error = connect_error("unix://u:secret@" + dir.path() + "/none.sock");
  EXPECT_EQ(error.code, Errc::connect_failed);
  EXPECT_TRUE(says(error, "No such file or directory; nothing was sent")) << error.detail;
  EXPECT_FALSE(says(error, "secret")) << error.detail;
}

TEST(Connect, ABlackHoleTimesOutAtTheDeadline) {
  const BlackHole hole;
  expect_takes(100ms, 150ms, [&] {
    const Error error = connect_error(hole.listener().url(), within(100ms));
    EXPECT_EQ(error.code, Errc::timed_out);
    EXPECT_TRUE(says(error, "no answer to the connection attempt within the limit; nothing was sent")) << error.detail;
  });
}

TEST(Connect, AFullUnixBacklogTimesOutAtTheDeadlineAndIsPassedWhenItClears) {
  const TempDir dir;
  const BlackHole hole(unix_address(dir.path() + "/s.sock"));
  const std::string url = "unix://" + dir.path() + "/s.sock";
  expect_takes(100ms, 150ms, [&] { EXPECT_EQ(connect_error(url, within(100ms)).code, Errc::timed_out); });

  Result<std::unique_ptr<Transport>> late = Error{};
  std::jthread waiting([&] { late = connect(parse_endpoint(url), within(10s)); });
  for (int i = 0; i < 2; ++i) (void)hole.listener().accept();
  waiting.join();
  EXPECT_TRUE(late.has_value());
}

TEST(Connect, AStopEndsItSoonAndBeforeItBegan) {
  const BlackHole hole;
  std::stop_source already;
  already.request_stop();
  EXPECT_EQ(connect_error(hole.listener().url(), within(5s, already.get_token())).code, Errc::cancelled);

  Millis least = forever;
  for (int run = 0; run < 3 && least > 50ms; ++run) {
    std::stop_source source;
    Deadline asked{};
    std::jthread stopper([&] {
      std::this_thread::sleep_for(30ms);
      asked = LeaseClock::now();
      source.request_stop();
    });
    const Error error = connect_error(hole.listener().url(), within(10s, source.get_token()));
    const Deadline ended = LeaseClock::now();
    stopper.join();
    EXPECT_EQ(error.code, Errc::cancelled);
    EXPECT_TRUE(says(error, "nothing was sent")) << error.detail;
    least = std::min(least, std::chrono::duration_cast<Millis>(ended - asked));
  }
  EXPECT_LE(least, 50ms);
}

TEST(Connect, ASignalEveryTwoMillisecondsNeitherShortensNorStretchesIt) {
  const BlackHole hole;
  const SignalStorm storm;
  expect_takes(100ms, 150ms,
               [&] { EXPECT_EQ(connect_error(hole.listener().url(), within(100ms)).code, Errc::timed_out); });
}

TEST(DialAny, GoesOnToTheNextAddressAndSharesTheTimeFairly) {
  const Endpoint named = parse_endpoint("redis://example.org");
  const ClosedPort closed;
  const BlackHole hole;
  const Listener listener;
  expect_takes(100ms, 150ms, [&] {
    auto fd = dial_any(named, {hole.listener().address(), closed.address(), listener.address()}, within(300ms));
    EXPECT_TRUE(fd.has_value());
  });
}

TEST(DialAny, SumsUpWhyEachAddressFailed) {
  const Endpoint named = parse_endpoint("redis://example.org");
  const ClosedPort v4;
  const ClosedPort v6("::1");
  const auto refused = dial_any(named, {v6.address(), v4.address()}, within(5s));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::connect_failed);
  EXPECT_EQ(refused.error().detail,
            "cannot connect to redis://example.org:6379/0: ::1: Connection refused; 127.0.0.1: Connection refused; "
            "nothing was sent. Is the server running there?");

  const BlackHole hole;
  const auto late = dial_any(named, {v4.address(), hole.listener().address()}, within(50ms));
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, Errc::timed_out);
  EXPECT_TRUE(says(late.error(), "127.0.0.1: Connection refused; 127.0.0.1: no answer")) << late.error().detail;
}

TEST(Dial, GivesABlockingSocketThatNoChildInheritsAndNagleDoesNotDelay) {
  const Listener listener;
  const Dialled dialled = dial(listener.address(), within(5s));
  ASSERT_EQ(dialled.status, IoStatus::ok);
  const int fd = dialled.fd.get();
  EXPECT_EQ(::fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  EXPECT_EQ(::fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
  const auto option = [fd](int level, int name) {
    int value = 0;
    socklen_t size = sizeof value;
    EXPECT_EQ(::getsockopt(fd, level, name, &value, &size), 0);
    return value;
  };
  EXPECT_NE(option(IPPROTO_TCP, TCP_NODELAY), 0);
  EXPECT_NE(option(SOL_SOCKET, SO_KEEPALIVE), 0);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPIDLE), 30);
}

TEST(Connect, FailedAttemptsLeakNoDescriptors) {
  const ClosedPort closed;
  const BlackHole hole;
  const auto open_fds = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator{});
  };
  (void)connect_error(closed.url());
  const auto before = open_fds();
  for (int i = 0; i < 100; ++i) {
    (void)connect_error(closed.url());
    (void)connect_error(hole.listener().url(), within(1ms));
  }
  EXPECT_EQ(open_fds(), before);
}

}  // namespace
}  // namespace v0
}  // namespace redlease
