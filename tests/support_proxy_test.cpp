// The proxy that does harm: exactly as much as it was told to.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "support/fault_proxy.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "support/sleepless.hpp"

namespace redlease {
inline namespace v0 {
namespace {

using std::chrono::milliseconds;

const std::string request = raw_command({"SET", "k", "v"});
const std::string reply = "+OK\r\n";

struct Ending {
  std::string bytes;
  int error;  // 0: an orderly end
};

Ending read_to_the_end(const TestFd& fd) {
  Ending result{};
  std::array<char, 256> bytes;
  while (true) {
    const ssize_t n = ::recv(fd.get(), bytes.data(), bytes.size(), 0);
    if (n <= 0) {
      result.error = n < 0 ? errno : 0;
      return result;
    }
    result.bytes.append(bytes.data(), static_cast<std::size_t>(n));
  }
}

class FaultProxyTest : public testing::TestWithParam<FaultProxy::Front> {
 protected:
  RedisServer server;
  RawClient truth{server.unix_socket()};
  FaultProxy proxy{server.tcp(), GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Fronts, FaultProxyTest,
                         testing::Values(FaultProxy::Front::tcp, FaultProxy::Front::unix_socket),
                         [](const auto& front) { return front.param == FaultProxy::Front::tcp ? "Tcp" : "Unix"; });

TEST_P(FaultProxyTest, ForwardsAndCounts) {
  RawClient first(proxy.address());
  EXPECT_EQ(first.command({"SET", "k", "v"}).text, "OK");
  RawClient second(proxy.address());
  EXPECT_EQ(second.get("k"), "v");
  EXPECT_EQ(proxy.connections(), 2U);
  EXPECT_EQ(proxy.stats(0).up, request.size());
  EXPECT_EQ(proxy.stats(0).down, reply.size());
  EXPECT_EQ(proxy.newest().up, raw_command({"GET", "k"}).size());
  EXPECT_TRUE(proxy.newest().open);
}

TEST_P(FaultProxyTest, ForwardsMoreThanASocketHolds) {
  RawClient client(proxy.address());
  const std::string large(8'000'000, 'x');
  client.set("k", large);
  EXPECT_EQ(client.get("k"), large);
}

TEST_P(FaultProxyTest, EveryCutDeliversExactlyItsBytes) {
  std::size_t executed = 0;
  for (std::uint64_t up = 0; up <= request.size(); ++up) {
    const std::uint64_t last_down = up == request.size() ? reply.size() : 0;
    for (std::uint64_t down = 0; down <= last_down; ++down) {
      truth.flushall();
      Faults faults;
      faults.up.cut_after = up;
      faults.down.cut_after = down;
      proxy.on_next(faults);
      const TestFd client = connect_to(proxy.address());
      // All at once; a cut at 0 may close before that.
      ::send(client.get(), request.data(), request.size(), MSG_NOSIGNAL);
      const Ending ending = read_to_the_end(client);
      EXPECT_EQ(ending.bytes, reply.substr(0, down)) << up << " up";
      ASSERT_TRUE(proxy.settled());
      const FaultProxy::Stats stats = proxy.newest();
      EXPECT_EQ(stats.up, up);
      EXPECT_EQ(stats.down, down);
      EXPECT_FALSE(stats.open);
      EXPECT_EQ(truth.exists("k"), up == request.size()) << up << " up, " << down << " down";
      executed += truth.exists("k") ? 1U : 0U;
    }
  }
  EXPECT_EQ(executed, reply.size() + 1);
}

TEST_P(FaultProxyTest, CutsALiveConnectionRelativeToWhatItHasCarried) {
  RawClient client(proxy.address());
  EXPECT_EQ(client.command({"PING"}).text, "PONG");
  proxy.cut_after(request.size(), 2);
  client.send({"SET", "k", "v"});
  EXPECT_THROW(client.receive(), std::runtime_error);
  ASSERT_TRUE(proxy.settled());
  EXPECT_EQ(truth.get("k"), "v");
  EXPECT_EQ(proxy.newest().down, std::string("+PONG\r\n+O").size());
  EXPECT_EQ(RawClient(proxy.address()).command({"PING"}).text, "PONG");
}

TEST_P(FaultProxyTest, IsNotSettledBeforeTheServerHasActedOnWhatTheCutLetThrough) {
  RawClient client(proxy.address());
  client.command({"PING"});
  proxy.cut_after(request.size(), 0);
  server.stop();
  client.send({"SET", "k", "v"});
  EXPECT_THROW(client.receive(), std::runtime_error);
  EXPECT_FALSE(proxy.settled(milliseconds(30)));
  server.cont();
  EXPECT_TRUE(proxy.settled());
  EXPECT_EQ(truth.get("k"), "v");
}

TEST_P(FaultProxyTest, WithheldRepliesShowThatTheServerHasActed) {
  RawClient client(proxy.address());
  client.command({"PING"});
  const std::uint64_t before = proxy.newest().down;
  proxy.withhold_replies();
  client.send({"SET", "k", "v"});
  ASSERT_TRUE(eventually([&] { return proxy.newest().down_received == before + reply.size(); }));
  EXPECT_EQ(truth.get("k"), "v");
  EXPECT_EQ(proxy.newest().down, before);
  EXPECT_THROW(client.receive(milliseconds(30)), std::runtime_error);
  proxy.withhold_replies(false);
  EXPECT_EQ(client.receive().text, "OK");
}

TEST_P(FaultProxyTest, WithheldRequestsDoNotReachTheServer) {
  RawClient client(proxy.address());
  client.command({"PING"});
  proxy.withhold_requests();
  client.send({"SET", "k", "v"});
  ASSERT_TRUE(eventually([&] { return proxy.newest().up_received > proxy.newest().up; }));
  EXPECT_FALSE(truth.exists("k"));
  proxy.heal();
  EXPECT_EQ(client.receive().text, "OK");
}

TEST_P(FaultProxyTest, DelaysEachWay) {
  Faults faults;
  faults.up.delay = milliseconds(30);
  faults.down.delay = milliseconds(50);
  proxy.on_new(faults);
  RawClient client(proxy.address());
  const Stopwatch watch;
  EXPECT_EQ(client.command({"PING"}).text, "PONG");
  EXPECT_GE(watch.elapsed(), milliseconds(80));
}

TEST_P(FaultProxyTest, Dribbles) {
  Faults faults;
  faults.down.dribble = 1;
  faults.down.every = milliseconds(10);
  proxy.on_next(faults);
  RawClient client(proxy.address());
  const Stopwatch watch;
  EXPECT_EQ(client.command({"PING"}).text, "PONG");
  EXPECT_GE(watch.elapsed(), milliseconds(60));  // 7 bytes have 6 pauses between them
}

TEST_P(FaultProxyTest, RefusesAndTakesAgainAtTheSameAddress) {
  RawClient before(proxy.address());
  before.command({"PING"});
  proxy.refuse();
  EXPECT_THROW(RawClient(proxy.address()), std::runtime_error);
  EXPECT_EQ(before.command({"PING"}).text, "PONG");
  proxy.refuse(false);
  EXPECT_EQ(RawClient(proxy.address()).command({"PING"}).text, "PONG");
}

TEST_P(FaultProxyTest, DropAllEndsWhatLivesAndNothingElse) {
  RawClient one(proxy.address()), two(proxy.address());
  one.command({"PING"});
  two.command({"PING"});
  proxy.drop_all();
  EXPECT_THROW(one.command({"PING"}), std::runtime_error);
  EXPECT_THROW(two.command({"PING"}), std::runtime_error);
  EXPECT_EQ(RawClient(proxy.address()).command({"PING"}).text, "PONG");
}

TEST_P(FaultProxyTest, PassesOnTheEndOfEitherSide) {
  { RawClient(proxy.address()).command({"PING"}); }
  EXPECT_TRUE(eventually([&] { return proxy.newest().server_done; }));
  const TestFd client = connect_to(proxy.address());
  send_all(client, raw_command({"QUIT"}));
  const Ending ending = read_to_the_end(client);
  EXPECT_EQ(ending.bytes, "+OK\r\n");
  EXPECT_EQ(ending.error, 0);
}

TEST_P(FaultProxyTest, AServerThatIsDownEndsTheConnection) {
  server.kill9();
  const TestFd client = connect_to(proxy.address());
  EXPECT_EQ(read_to_the_end(client).bytes, "");
  EXPECT_FALSE(proxy.newest().open);
  const RedisServer other;
  proxy.retarget(other.unix_socket());
  EXPECT_EQ(RawClient(proxy.address()).command({"PING"}).text, "PONG");
}

TEST(FaultProxyOverTcp, ACutEndsInAnOrderlyWayOrInAReset) {
  const RedisServer server;
  FaultProxy proxy(server.tcp());
  for (const bool reset : {false, true}) {
    const TestFd client = connect_to(proxy.address());
    ASSERT_TRUE(eventually([&] { return proxy.connections() == (reset ? 2U : 1U); }));
    proxy.cut_after(request.size(), 3, reset);
    send_all(client, request);
    const Ending ending = read_to_the_end(client);
    EXPECT_EQ(ending.bytes, "+OK");
    EXPECT_EQ(ending.error, reset ? ECONNRESET : 0);
  }
}

}  // namespace
}  // namespace v0
}  // namespace redlease
