// The tests' own ground: servers, clients, monitors, scripted answers.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "support/children.hpp"
#include "support/monitor.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "support/scripted_server.hpp"
#include "support/shared_page.hpp"
#include "support/sleepless.hpp"
#include "support/temp_dir.hpp"

namespace redlease {
inline namespace v0 {
namespace {

using std::chrono::milliseconds;

template <class F>
std::string failure_of(F f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "no failure";
}

class ServerName {
 public:
  explicit ServerName(const char* name) {
    if (const char* before = std::getenv("REDLEASE_TEST_SERVER")) before_ = before;
    ::setenv("REDLEASE_TEST_SERVER", name, 1);
  }
  ~ServerName() {
    if (before_.empty()) {
      ::unsetenv("REDLEASE_TEST_SERVER");
    } else {
      ::setenv("REDLEASE_TEST_SERVER", before_.c_str(), 1);
    }
  }

 private:
  std::string before_;
};

TEST(RedisServer, AnswersOnBothItsAddressesAndLeavesNothingBehind) {
  std::string dir;
  pid_t pid = 0;
  {
    const RedisServer server;
    dir = server.dir();
    pid = server.pid();
    RawClient(server.tcp()).set("k", "v");
    EXPECT_EQ(RawClient(server.unix_socket()).get("k"), "v");
    EXPECT_EQ(server.url_tcp(), "redis://127.0.0.1:" + std::to_string(server.port()));
    EXPECT_EQ(server.url_unix(), "unix://" + server.socket_path());
    EXPECT_TRUE(std::filesystem::exists(dir));
  }
  EXPECT_FALSE(std::filesystem::exists(dir));
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(RedisServer, AMissingProgramIsLoud) {
  const ServerName name("/nonexistent/redis-server");
  const std::string failure = failure_of([] { RedisServer server; });
  EXPECT_NE(failure.find("/nonexistent/redis-server"), std::string::npos) << failure;
  EXPECT_NE(failure.find("No such file"), std::string::npos) << failure;
}

TEST(RedisServer, AServerThatEndsWhileStartingIsLoudAndShowsItsLog) {
  const std::string failure = failure_of([] { RedisServer server({"no-such-directive yes"}); });
  EXPECT_NE(failure.find("no-such-directive"), std::string::npos) << failure;
}

TEST(RedisServer, RunsUnderAWrapper) {
  const char* before = std::getenv("REDLEASE_TEST_SERVER");
  const std::string wrapped = "nice -n 1 " + std::string(before != nullptr ? before : "redis-server");
  const ServerName name(wrapped.c_str());
  RedisServer server;
  EXPECT_EQ(RawClient(server.tcp()).command({"PING"}).text, "PONG");
  server.stop();
  server.cont();
}

TEST(RedisServer, TakesConfigurationAndComesUpBehindAPassword) {
  const RedisServer server({"requirepass secret", "maxmemory 10mb", "user limited on >pw ~a* +get"});
  RawClient client(server.tcp());
  EXPECT_TRUE(client.command({"GET", "k"}).text.starts_with("NOAUTH"));
  client.auth("secret");
  EXPECT_EQ(client.command({"CONFIG", "GET", "maxmemory"}).elements.at(1).text, "10485760");
  RawClient limited(server.unix_socket());
  limited.auth("limited", "pw");
  EXPECT_TRUE(limited.command({"SET", "a", "1"}).text.starts_with("NOPERM"));
}

TEST(RedisServer, StandsStillBetweenStopAndCont) {
  RedisServer server;
  RawClient client(server.tcp());
  server.stop();
  client.send({"PING"});
  EXPECT_THROW(client.receive(milliseconds(50)), std::runtime_error);
  server.cont();
  EXPECT_EQ(client.receive().text, "PONG");
}

TEST(RedisServer, AStoppedOneCanBeLeftBehind) {
  pid_t pid = 0;
  {
    RedisServer server;
    pid = server.pid();
    server.stop();
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(RedisServer, RestartsEmptyAtTheSameAddresses) {
  RedisServer server;
  RawClient(server.tcp()).set("k", "v");
  const pid_t before = server.pid();
  const std::string url = server.url_tcp();
  server.restart();
  EXPECT_NE(server.pid(), before);
  EXPECT_EQ(server.url_tcp(), url);
  EXPECT_EQ(RawClient(server.tcp()).keys(), std::vector<std::string>{});
}

TEST(RedisServer, KeepsItsDataWhenAsked) {
  RedisServer server;
  RawClient(server.tcp()).set("k", "v");
  server.restart(true);
  EXPECT_EQ(RawClient(server.unix_socket()).get("k"), "v");
}

TEST(RedisServer, KeepsWhatItsAppendOnlyFileHasThroughAKill) {
  RedisServer server({"appendonly yes", "appendfsync always"});
  RawClient(server.tcp()).set("k", "v");
  server.kill9();
  EXPECT_EQ(server.pid(), -1);
  EXPECT_THROW(RawClient(server.tcp()), std::runtime_error);
  EXPECT_THROW(RawClient(server.unix_socket()), std::runtime_error);
  server.restart(true);
  EXPECT_EQ(RawClient(server.tcp()).get("k"), "v");
  server.restart();
  EXPECT_EQ(RawClient(server.tcp()).get("k"), std::nullopt);
}

TEST(RedisServer, CanBeMetWhileItIsLoading) {
  RedisServer server({"key-load-delay 2000", "loading-process-events-interval-bytes 1024"});
  RawClient client(server.tcp());
  for (int i = 0; i < 500; ++i) client.set("k" + std::to_string(i), std::string(100, 'v'));
  server.restart(true, Await::answer);
  RawClient early(server.tcp());
  EXPECT_TRUE(early.command({"GET", "k0"}).text.starts_with("LOADING"));
  EXPECT_TRUE(eventually([&] { return early.command({"GET", "k0"}).kind == RawReply::Kind::text; }));
  server.restart(true);
  EXPECT_EQ(RawClient(server.tcp()).get("k0"), std::string(100, 'v'));
}

TEST(RedisServer, DiesWithTheProcessThatMadeIt) {
  SharedPage page;
  const TempDir inherited;  // the child leaves its server's directory in it
  const auto statuses = run_children(1, [&](int) {
    ::setenv("TMPDIR", inherited.path().c_str(), 1);
    RedisServer server;
    page.counter() = server.pid();
    ::kill(::getpid(), SIGKILL);
  });
  EXPECT_EQ(statuses, std::vector<int>{-SIGKILL});
  const auto pid = static_cast<pid_t>(page.counter());
  ASSERT_GT(pid, 0);
  // Whoever inherits it may take its time to bury it.
  const auto dead = [&] {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string id, name, state;
    return !(stat >> id >> name >> state) || state == "Z";
  };
  EXPECT_TRUE(eventually(dead));
}

TEST(RawClient, TellsValuesOfEveryKind) {
  const RedisServer server;
  RawClient client(server.unix_socket());
  client.set("k", std::string("\0\r\n", 3));
  EXPECT_EQ(client.get("k"), std::string("\0\r\n", 3));
  EXPECT_EQ(client.pttl("k"), -1);
  EXPECT_EQ(client.pttl("none"), -2);
  EXPECT_TRUE(client.exists("k"));
  EXPECT_EQ(client.keys("*"), std::vector<std::string>{"k"});
  EXPECT_TRUE(client.del("k"));
  EXPECT_FALSE(client.del("k"));
  EXPECT_EQ(to_string(client.command({"EVAL", "return {1, false, 'x', redis.error_reply('ERR y')}", "0"})),
            "[1, nil, x, (error) ERR y]");
  client.config_set("timeout", "77");
  EXPECT_EQ(client.command({"CONFIG", "GET", "timeout"}).elements.at(1).text, "77");
  EXPECT_EQ(client.info("role"), "master");
  EXPECT_THROW(client.config_set("no-such", "1"), std::runtime_error);
}

TEST(RawClient, WritingToADeadServerThrowsAndKillsNobody) {
  RedisServer server;
  RawClient client(server.unix_socket());
  server.kill9();
  EXPECT_THROW(client.command({"PING"}), std::runtime_error);
  EXPECT_THROW(client.command({"PING"}), std::runtime_error);
}

TEST(Monitor, SyncHasSeenAllThatWasAnsweredBefore) {
  const RedisServer server;
  RawClient client(server.unix_socket());
  // Valkey 8.1 tells quotes and backslashes as they are, so that nobody can take its lines apart.
  const bool quotes = client.command({"INFO", "server"}).text.find("valkey_version") == std::string::npos;
  const std::string value = quotes ? "a \"b\"\\\n\x01\xff" : "a b\n\x01\xff";
  Monitor monitor(server.tcp());
  for (int i = 0; i < 100; ++i) client.set("k" + std::to_string(i), value);
  const auto lines = monitor.lines();
  ASSERT_EQ(lines.size(), 100U);
  EXPECT_EQ(lines[99].argv, (std::vector<std::string>{"SET", "k99", value}));
  EXPECT_EQ(lines[99].name(), "SET");
  EXPECT_EQ(lines[99].db, 0);
  EXPECT_EQ(lines[99].client, "unix:" + server.socket_path());
  monitor.clear();
  client.command({"SELECT", "3"});
  client.command({"eval", "return redis.call('get', KEYS[1])", "1", "k"});
  const auto script = monitor.lines();
  ASSERT_EQ(script.size(), 3U);
  EXPECT_EQ(script[1].name(), "EVAL");
  EXPECT_FALSE(script[1].by_script());
  EXPECT_EQ(script[2].name(), "GET");
  EXPECT_EQ(script[2].db, 3);
  EXPECT_TRUE(script[2].by_script());
}

TEST(Monitor, ADeadServerFailsTheSync) {
  RedisServer server({"requirepass secret"});
  Monitor monitor(server.unix_socket(), "secret");
  monitor.sync();
  server.kill9();
  EXPECT_THROW(monitor.sync(), std::runtime_error);
}

TEST(ScriptedServer, SaysWhatItIsToldToAndRecordsWhatCame) {
  ScriptedServer server([](const ScriptedServer::Command& command) -> std::string {
    if (command.front() == "LOAD") return "-LOADING foo\r\n";
    if (command.front() == "GARBAGE") return "?!\r\n";
    if (command.front() == "BYE") return "+so long\r\n" + std::string(hang_up);
    return "";
  });
  RawClient client(server.address());
  EXPECT_EQ(client.command({"LOAD", "a b"}).text, "LOADING foo");
  client.send({"SILENCE"});
  EXPECT_THROW(client.receive(milliseconds(30)), std::runtime_error);
  EXPECT_EQ(client.command({"BYE"}).text, "so long");
  EXPECT_THROW(client.receive(), std::runtime_error);
  EXPECT_THROW(RawClient(server.address()).command({"GARBAGE"}), std::runtime_error);
  EXPECT_EQ(server.commands(),
            (std::vector<ScriptedServer::Command>{{"LOAD", "a b"}, {"SILENCE"}, {"BYE"}, {"GARBAGE"}}));
  EXPECT_EQ(server.connections(), 2U);
}

}  // namespace
}  // namespace v0
}  // namespace redlease
