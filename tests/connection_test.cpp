#include "redlease/wire/connection.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "redlease/wire/resp.hpp"

using namespace redlease;
using namespace std::chrono_literals;

namespace {

// What a test lets a Transport do, in order; when the reads are used up they time out.
struct Play {
  std::size_t takes = std::string::npos;  // how many bytes of a write leave before it fails
  std::deque<std::string> reads;          // "" is the server's closing
  std::string written;
  bool quiet = true;
  bool slow = false;  // 50 us a read
};

class PlayedTransport final : public Transport {
 public:
  explicit PlayedTransport(Play& play) : play_(play) {}
  Io write(std::string_view bytes, const Limits&) noexcept override {
    const std::size_t n = std::min(bytes.size(), play_.takes);
    play_.written += bytes.substr(0, n);
    return {n, n == bytes.size() ? IoStatus::ok : IoStatus::failed, std::make_error_code(std::errc::broken_pipe)};
  }
  Io read(std::span<char> into, const Limits&) noexcept override {
    if (play_.slow) {
      for (const Deadline until = deadline_in(50us); LeaseClock::now() < until;) {
      }
    }
    if (play_.reads.empty()) return {0, IoStatus::timed_out, {}};
    std::string& next = play_.reads.front();
    const std::size_t n = next.copy(into.data(), into.size());
    next.erase(0, n);
    if (next.empty()) play_.reads.pop_front();
    return {n, n > 0 ? IoStatus::ok : IoStatus::closed, {}};
  }
  bool quiet() noexcept override { return play_.quiet && play_.reads.empty(); }

 private:
  Play& play_;
};

Endpoint endpoint() {
  Endpoint e;
  e.display = "redis://test:6379/0";
  return e;
}

const std::string time_reply = "*2\r\n$10\r\n1700000000\r\n$6\r\n500000\r\n";

Result<std::unique_ptr<Connection>> open(Play& play, const Endpoint& e) {
  return Connection::open(e, std::make_unique<PlayedTransport>(play), {});
}

std::unique_ptr<Connection> opened(Play& play) {
  play.reads.push_back(time_reply);
  auto connection = open(play, endpoint());
  EXPECT_TRUE(connection.has_value());
  play.written.clear();
  return std::move(connection).value();
}

std::string frame() {
  std::string f;
  append_command(f, {"PING"});
  return f;
}

}  // namespace

TEST(Connection, IntroducesItselfInOneRoundTrip) {
  Play play;
  Endpoint e = endpoint();
  e.user = "app";
  e.password = "s3cret";
  e.db = 7;
  e.client_name = "jobs";
  play.reads = {"+OK\r\n+OK\r\n+OK\r\n" + time_reply};
  auto connection = open(play, e);
  ASSERT_TRUE(connection.has_value());
  std::string expected;
  append_command(expected, {"AUTH", "app", "s3cret"});
  append_command(expected, {"SELECT", "7"});
  append_command(expected, {"CLIENT", "SETNAME", "jobs"});
  append_command(expected, {"TIME"});
  EXPECT_EQ(play.written, expected);
  EXPECT_GE(connection.value()->server_time_at_most(LeaseClock::now()), 1'700'000'000'500'000);
}

TEST(Connection, ARefusedNameOrTimeIsNotFatal) {
  Play play;
  Endpoint e = endpoint();
  e.client_name = "jobs";
  play.reads = {"-NOPERM no\r\n-NOPERM no\r\n"};
  auto connection = open(play, e);
  ASSERT_TRUE(connection.has_value());
  EXPECT_EQ(connection.value()->server_time_at_most(LeaseClock::now()), std::nullopt);
}

TEST(Connection, ARefusedAuthIsDeniedAndDoesNotShowThePassword) {
  Play play;
  Endpoint e = endpoint();
  e.password = "s3cret";
  play.reads = {"-WRONGPASS invalid\r\n" + time_reply};
  const auto connection = open(play, e);
  ASSERT_FALSE(connection.has_value());
  EXPECT_EQ(connection.error().code, Errc::denied);
  EXPECT_NE(connection.error().detail.find("WRONGPASS"), std::string::npos);
  EXPECT_EQ(connection.error().detail.find("s3cret"), std::string::npos);
}

TEST(Connection, ARefusedSelectHasItsOwnError) {
  Play play;
  Endpoint e = endpoint();
  e.db = 99;
  play.reads = {"-ERR DB index is out of range\r\n" + time_reply};
  const auto connection = open(play, e);
  ASSERT_FALSE(connection.has_value());
  EXPECT_EQ(connection.error().code, Errc::unsupported);
  EXPECT_NE(connection.error().detail.find("SELECT 99"), std::string::npos);
}

TEST(Connection, AMissingPasswordIsToldAtTheIntroduction) {
  Play play;
  play.reads = {"-NOAUTH Authentication required.\r\n"};
  const auto connection = open(play, endpoint());
  ASSERT_FALSE(connection.has_value());
  EXPECT_EQ(connection.error().code, Errc::denied);
}

TEST(Connection, WhatTheServerSaidBeforeItClosedIsPartOfTheError) {
  Play play;
  play.reads = {"-ERR max number of clients reached\r\n", ""};
  Endpoint e = endpoint();
  e.client_name = "jobs";
  const auto connection = open(play, e);
  ASSERT_FALSE(connection.has_value());
  EXPECT_EQ(connection.error().code, Errc::connection_closed);
  EXPECT_NE(connection.error().detail.find("max number of clients"), std::string::npos);
}

TEST(Connection, EveryByteThatDidNotLeaveProvesNonExecution) {
  for (std::size_t taken = 0; taken <= frame().size(); ++taken) {
    Play play;
    const auto connection = opened(play);
    play.takes = taken;
    play.reads = {""};
    const Delivery delivery = connection->call(frame(), {});
    EXPECT_EQ(delivery, taken == frame().size() ? Delivery::in_doubt : Delivery::not_executed) << taken;
    EXPECT_TRUE(connection->dead());
    EXPECT_EQ(connection->error().code, Errc::connection_closed);
  }
}

TEST(Connection, AReplyCutAnywhereIsInDoubt) {
  const std::string reply = "$5\r\nhello\r\n";
  for (std::size_t came = 0; came <= reply.size(); ++came) {
    Play play;
    const auto connection = opened(play);
    if (came > 0) play.reads.push_back(reply.substr(0, came));
    play.reads.emplace_back("");
    const Delivery delivery = connection->call(frame(), {});
    EXPECT_EQ(delivery, came == reply.size() ? Delivery::answered : Delivery::in_doubt) << came;
  }
}

TEST(Connection, ALateReplyNeverAnswersALaterQuestion) {
  Play play;
  const auto connection = opened(play);
  EXPECT_EQ(connection->call(frame(), {}), Delivery::in_doubt);  // times out
  EXPECT_TRUE(connection->broken());
  EXPECT_FALSE(connection->dead());
  play.reads = {"+late\r\n", "+mine\r\n"};
  ASSERT_EQ(connection->call(frame(), {}), Delivery::answered);
  EXPECT_EQ(connection->reply().text, "mine");
  EXPECT_FALSE(connection->broken());
}

TEST(Connection, SettlesWhenTheOwedRepliesHaveCome) {
  Play play;
  const auto connection = opened(play);
  (void)connection->call(frame(), {});
  ASSERT_TRUE(connection->send(frame(), {}));
  EXPECT_FALSE(connection->settled());
  play.reads = {"+first\r\n"};
  EXPECT_FALSE(connection->settled());
  play.reads = {"+sec", "ond\r\n"};
  EXPECT_TRUE(connection->settled());
  EXPECT_FALSE(connection->dead());
}

TEST(Connection, GarbageIsABadReplyAndTheEndOfTheConnection) {
  Play play;
  const auto connection = opened(play);
  play.reads = {"HTTP/1.1 400 Bad Request\r\n"};
  EXPECT_EQ(connection->call(frame(), {}), Delivery::in_doubt);
  EXPECT_EQ(connection->error().code, Errc::bad_reply);
  EXPECT_TRUE(connection->dead());
}

TEST(Connection, ItsGuessOfTheServersTimeIsNeverTooEarly) {
  Play play;
  const auto connection = opened(play);
  const Deadline sent{1s};
  connection->saw_server_time(sent, sent + 30ms, 5'000'000);
  EXPECT_EQ(connection->server_time_at_most(sent + 30ms), 5'030'000);
  EXPECT_EQ(connection->server_time_error(sent), 30ms);
  EXPECT_EQ(connection->server_time_error(sent + 1000s), 30ms + 2s) << "clocks drift apart";
}

TEST(Connection, AReplyThatNobodyAskedForAnswersNothing) {
  Play play;
  const auto connection = opened(play);
  play.reads = {"+mine\r\n+surplus\r\n"};
  ASSERT_EQ(connection->call(frame(), {}), Delivery::answered);
  EXPECT_FALSE(connection->quiet()) << "a pool must not lend it again";
  EXPECT_EQ(connection->call(frame(), {}), Delivery::not_executed);
  EXPECT_TRUE(connection->dead());
}

TEST(Connection, ArgumentsThatAServerRepeatsAreNotPassedOn) {
  Play play;
  Endpoint e = endpoint();
  e.password = "hunter2-secret";
  play.reads = {"-ERR unknown command 'AUTH', with args beginning with: 'hunter2-secret' \r\n" + time_reply};
  const auto connection = open(play, e);
  ASSERT_FALSE(connection.has_value());
  EXPECT_EQ(connection.error().detail.find("hunter2"), std::string::npos) << connection.error().detail;
}

TEST(Connection, AFullServerIsNotADeniedPassword) {
  Play play;
  Endpoint e = endpoint();
  e.password = "s3cret";
  e.db = 1;
  play.reads = {"-ERR max number of clients reached\r\n", ""};
  const auto connection = open(play, e);
  ASSERT_FALSE(connection.has_value());
  EXPECT_EQ(connection.error().code, Errc::connection_closed);
  EXPECT_NE(connection.error().detail.find("max number of clients"), std::string::npos);
}

TEST(Connection, ADeniedPasswordStaysDeniedWhenTheServerCloses) {
  Play play;
  Endpoint e = endpoint();
  e.password = "s3cret";
  play.reads = {"-WRONGPASS invalid\r\n", ""};
  const auto connection = open(play, e);
  ASSERT_FALSE(connection.has_value());
  EXPECT_EQ(connection.error().code, Errc::denied);
}

TEST(Connection, BytesThatAlwaysComeJustInTimeDoNotCarryACallPastItsLimit) {
  Play play;
  const auto connection = opened(play);
  play.slow = true;
  play.reads.assign(100'000, "x");  // a reply that does not end; this transport never looks at the time
  play.reads.front() = "+";
  const Delivery delivery = connection->call(frame(), {deadline_in(1ms), {}});
  EXPECT_GT(play.reads.size(), 50'000U);
  EXPECT_EQ(delivery, Delivery::in_doubt);
  EXPECT_EQ(connection->error().code, Errc::timed_out);
}
