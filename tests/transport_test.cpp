#include <csignal>
#include <stop_token>
#include <thread>

#include "listener.hpp"

namespace redlease {
inline namespace v0 {
namespace {

using namespace std::chrono_literals;

class SocketTransportTest : public testing::Test {
 protected:
  SocketTransportTest() : transport_(dial(listener_.address(), within(5s)).fd), peer_(listener_.accept()) {}

  void peer_sends(std::string_view bytes) const {
    ASSERT_EQ(::send(peer_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }

  Listener listener_;
  SocketTransport transport_;
  OwnedFd peer_;
};

TEST_F(SocketTransportTest, ReadTimesOutAtTheDeadlineWithAndWithoutAStopToken) {
  char byte[1];
  for (const bool stoppable : {false, true}) {
    const std::stop_source source;
    for (const Millis limit : {10ms, 100ms, 300ms}) {
      expect_takes(limit, limit + 50ms, [&] {
        const Io io = transport_.read(byte, within(limit, stoppable ? source.get_token() : std::stop_token{}));
        EXPECT_EQ(io.status, IoStatus::timed_out) << text(io);
        EXPECT_EQ(io.bytes, 0U);
      });
    }
  }
}

TEST_F(SocketTransportTest, ReadKeepsEachCallsOwnDeadlineAsTheyVary) {
  char byte[1];
  for (const Millis limit : {300ms, 30ms, 120ms, 60ms, 3ms, 200ms}) {
    expect_takes(limit, limit + 50ms,
                 [&] { EXPECT_EQ(transport_.read(byte, within(limit)).status, IoStatus::timed_out); });
  }
}

TEST_F(SocketTransportTest, ReadSaysWhatIsThereEvenIfTimeIsUp) {
  peer_sends("late");
  char bytes[8];
  ASSERT_TRUE(eventually([&] { return !transport_.quiet(); }));
  EXPECT_EQ(transport_.read(bytes, {Deadline::min(), {}}).bytes, 4U);
  EXPECT_EQ(transport_.read(bytes, {Deadline::min(), {}}).status, IoStatus::timed_out);
}

TEST_F(SocketTransportTest, ADribblingPeerDoesNotStretchTheDeadline) {
  std::jthread dribble([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      (void)::send(peer_.get(), "x", 1, MSG_NOSIGNAL);
      std::this_thread::sleep_for(10ms);
    }
  });
  expect_takes(100ms, 150ms, [&] {
    const Limits limits = within(100ms);
    char bytes[4];
    Io io;
    while (io.status == IoStatus::ok) io = transport_.read(bytes, limits);
    EXPECT_EQ(io.status, IoStatus::timed_out) << text(io);
  });
}

TEST_F(SocketTransportTest, ASignalEveryTwoMillisecondsNeitherShortensNorStretchesIt) {
  const SignalStorm storm;
  char byte[1];
  expect_takes(100ms, 150ms, [&] { EXPECT_EQ(transport_.read(byte, within(100ms)).status, IoStatus::timed_out); });
  const std::string much(64'000'000, 'x');
  expect_takes(100ms, 150ms, [&] { EXPECT_EQ(transport_.write(much, within(100ms)).status, IoStatus::timed_out); });
}

TEST_F(SocketTransportTest, ReadTellsAnOrderlyCloseFromAReset) {
  char byte[1];
  SocketTransport other(dial(listener_.address(), within(5s)).fd);
  (void)listener_.accept();
  EXPECT_EQ(other.read(byte, within(5s)).status, IoStatus::closed);

  // Disconnected with linger 0: the kernel sends a reset.
  const linger reset{1, 0};
  ASSERT_EQ(::setsockopt(peer_.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
  const sockaddr nobody{AF_UNSPEC, {}};
  ASSERT_EQ(::connect(peer_.get(), &nobody, sizeof nobody), 0);
  const Io io = transport_.read(byte, within(5s));
  EXPECT_EQ(io.status, IoStatus::failed);
  EXPECT_EQ(io.error, std::errc::connection_reset) << text(io);
}

TEST_F(SocketTransportTest, WriteReportsWhatTheKernelTookWhenThePeerStopsReading) {
  const std::string much(64'000'000, 'x');
  Io io;
  expect_takes(100ms, 5s, [&] { io = transport_.write(much, within(100ms)); });
  EXPECT_EQ(io.status, IoStatus::timed_out) << text(io);
  ASSERT_GT(io.bytes, 0U);
  ASSERT_LT(io.bytes, much.size());

  transport_ = SocketTransport(OwnedFd{});
  std::size_t arrived = 0;
  std::vector<char> room(1'000'000);
  for (ssize_t n = 0; (n = ::recv(peer_.get(), room.data(), room.size(), 0)) > 0;)
    arrived += static_cast<std::size_t>(n);
  EXPECT_EQ(arrived, io.bytes);
}

TEST_F(SocketTransportTest, WriteHandsOverEverythingToASlowReader) {
  const std::string much(8'000'000, 'x');
  std::size_t arrived = 0;
  std::jthread reader([&] {
    std::vector<char> room(100'000);
    while (arrived < much.size()) {
      const ssize_t n = ::recv(peer_.get(), room.data(), room.size(), 0);
      ASSERT_GT(n, 0);
      arrived += static_cast<std::size_t>(n);
    }
  });
  const Io io = transport_.write(much, within(30s));
  EXPECT_EQ(io.status, IoStatus::ok) << text(io);
  EXPECT_EQ(io.bytes, much.size());
  reader.join();
  EXPECT_EQ(arrived, much.size());
}

TEST_F(SocketTransportTest, WriteToAClosedPeerFailsWithoutSigpipe) {
  struct sigaction action {};
  ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &action), 0);
  ASSERT_EQ(action.sa_handler, SIG_DFL) << "else the signal would go unnoticed";
  peer_ = OwnedFd{};
  Io io;
  ASSERT_TRUE(eventually([&] { return (io = transport_.write("x", within(5s))).status != IoStatus::ok; }));
  EXPECT_EQ(io.status, IoStatus::failed);
  EXPECT_TRUE(io.error == std::errc::broken_pipe || io.error == std::errc::connection_reset) << text(io);
  EXPECT_EQ(transport_.write("x", within(5s)).status, IoStatus::failed);
}

TEST_F(SocketTransportTest, AStopBeforeTheFirstByteSendsNothingAndADeadlineEndsTheWaitForRoom) {
  std::stop_source source;
  source.request_stop();
  const Io stopped = transport_.write("x", within(5s, source.get_token()));
  EXPECT_EQ(stopped.status, IoStatus::cancelled);
  EXPECT_EQ(stopped.bytes, 0U);
  const std::string much(64'000'000, 'x');
  const Io late = transport_.write(much, within(0ms));
  EXPECT_EQ(late.status, IoStatus::timed_out);
  EXPECT_LT(late.bytes, much.size());
  char byte = 0;
  for (std::size_t heard = 0; heard < late.bytes; ++heard) ASSERT_EQ(::recv(peer_.get(), &byte, 1, 0), 1);
  transport_ = SocketTransport(OwnedFd{});
  EXPECT_EQ(::recv(peer_.get(), &byte, 1, 0), 0);
}

TEST_F(SocketTransportTest, AStopEndsAReadSoonAndAWriteInTheMiddle) {
  const std::string much(64'000'000, 'x');
  Millis least = forever;
  for (int run = 0; run < 3 && least > 50ms; ++run) {
    for (const bool reading : {true, false}) {
      std::stop_source source;
      Deadline asked{};
      std::jthread stopper([&] {
        std::this_thread::sleep_for(30ms);
        asked = LeaseClock::now();
        source.request_stop();
      });
      char byte[1];
      const Limits limits = within(10s, source.get_token());
      const Io io = reading ? transport_.read(byte, limits) : transport_.write(much, limits);
      const Deadline ended = LeaseClock::now();
      stopper.join();
      EXPECT_EQ(io.status, IoStatus::cancelled) << text(io);
      if (reading) least = std::min(least, std::chrono::duration_cast<Millis>(ended - asked));
    }
  }
  EXPECT_LE(least, 50ms);
}

TEST_F(SocketTransportTest, AReplyThatIsThereBeatsAStop) {
  std::stop_source source;
  source.request_stop();
  peer_sends("+OK");
  ASSERT_TRUE(eventually([&] { return !transport_.quiet(); }));
  char bytes[8];
  EXPECT_EQ(transport_.read(bytes, within(5s, source.get_token())).bytes, 3U);
  EXPECT_EQ(transport_.read(bytes, within(5s, source.get_token())).status, IoStatus::cancelled);
}

TEST_F(SocketTransportTest, IsQuietUntilSomethingComesOrItIsClosed) {
  EXPECT_TRUE(transport_.quiet());
  peer_sends("x");
  EXPECT_TRUE(eventually([&] { return !transport_.quiet(); }));
  char byte[1];
  EXPECT_EQ(transport_.read(byte, within(5s)).bytes, 1U) << "looking must not take it";
  EXPECT_TRUE(transport_.quiet());
  peer_ = OwnedFd{};
  EXPECT_TRUE(eventually([&] { return !transport_.quiet(); }));
}

TEST(SocketTransport, WithoutASocketFailsAtOnce) {
  SocketTransport none{OwnedFd{}};
  const std::stop_source source;
  char byte[1];
  EXPECT_EQ(none.read(byte, within(10s, source.get_token())).error, std::errc::bad_file_descriptor);
  EXPECT_EQ(none.write("x", within(10s)).error, std::errc::bad_file_descriptor);
  EXPECT_FALSE(none.quiet());
}

}  // namespace
}  // namespace v0
}  // namespace redlease
