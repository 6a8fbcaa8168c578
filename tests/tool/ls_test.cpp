// ls by the real binary.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "redlease/redlease.hpp"
#include "support/monitor.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "support/scripted_server.hpp"
#include "tool/terminal.hpp"
#include "tool/tool.hpp"

namespace redlease {
namespace {

using Json = nlohmann::json;

class ToolLs : public ::testing::Test {
 protected:
  ToolResult run(const std::vector<std::string>& arguments) { return run_tool(arguments, {.url = server_.url_unix()}); }
  std::vector<std::string> names(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"ls", "--json"});
    const auto result = run(arguments);
    EXPECT_EQ(result.exit, 0) << result.err;
    std::vector<std::string> out;
    for (const Json& lease : Json::parse(result.out)) out.push_back(lease.at("key"));
    return out;
  }
  void hold(const std::string& name) {
    held_.push_back(client_.try_acquire(name, {.ttl = Millis(600'000)}).lease().value());
  }
  // Keys that are no leases, by pipelining.
  void fill(int count, const std::string& prefix, const std::string& value = "x") {
    for (int i = 0; i < count; ++i) {
      raw_.send({"SET", prefix + std::to_string(i), value});
      if (i % 1'000 == 999 || i + 1 == count) {
        for (int k = 0; k <= i % 1'000; ++k) (void)raw_.receive();
      }
    }
  }

  RedisServer server_;
  RawClient raw_{server_.unix_socket()};
  Client client_{server_.url_unix()};
  std::vector<Lease> held_;
};

TEST_F(ToolLs, ListsWhatIsHeldByNameAndNothingElse) {
  hold("stock:7");
  hold("nightly");
  client_.try_acquire("given back").lease()->release();
  raw_.set("data", "x");
  raw_.command({"SET", "foreign", "someone", "PX", "100000"});
  raw_.command({"HSET", "hash", "a", "b"});
  EXPECT_EQ(names({}), (std::vector<std::string>{"nightly", "stock:7"}));
  EXPECT_EQ(names({"stock:*"}), std::vector<std::string>{"stock:7"});
  EXPECT_EQ(names({"stock:[5-8]"}), std::vector<std::string>{"stock:7"});
  EXPECT_EQ(names({"?ightly"}), std::vector<std::string>{"nightly"});
  EXPECT_EQ(names({"nightly"}), std::vector<std::string>{"nightly"});
  EXPECT_EQ(names({"night"}), std::vector<std::string>{});
  EXPECT_EQ(names({"foreign"}), std::vector<std::string>{});
  const auto text = run({"ls"}).out;
  EXPECT_TRUE(text.starts_with("KEY ")) << text;
  EXPECT_LT(text.find("nightly"), text.find("stock:7")) << text;
}

TEST_F(ToolLs, WithAllAlsoWhatIsFreeButKnownAndWhatOthersHold) {
  hold("nightly");
  client_.try_acquire("given back").lease()->release();
  raw_.set("data", "x");
  raw_.command({"SET", "foreign", "someone", "PX", "100000"});
  raw_.command({"HSET", "hash", "a", "b"});
  raw_.command({"PEXPIRE", "hash", "100000"});
  raw_.set("lasting", "someone");
  Tool waiter({"acquire", "lasting", "--wait", "forever"}, {.url = server_.url_unix()});
  ASSERT_TRUE(becomes([&] { return raw_.command({"KEYS", "lasting:*lease:queue"}).elements.size() == 1; }));
  EXPECT_EQ(names({"--all"}), (std::vector<std::string>{"foreign", "given back", "lasting", "nightly"}));
  EXPECT_EQ(names({"--all", "l*"}), std::vector<std::string>{"lasting"});
  const auto text = run({"ls", "--all"}).out;
  EXPECT_NE(text.find("(not ours)"), std::string::npos) << text;
  EXPECT_NE(text.find("(free)"), std::string::npos) << text;
  EXPECT_NE(text.find("never"), std::string::npos) << text;
}

TEST_F(ToolLs, NamesWithBracesAndWildcardsInThemAreFound) {
  const std::vector<std::string> odd{"a*b", "a[b", "a\\b", "x", "x:{x}", "{tag}:1", "{}y", "}z{", "ü\xff"};
  for (const auto& name : odd) hold(name);
  const auto found = run({"ls"}).out;
  for (const auto* name : {"a*b", "a[b", "a\\b", "x:{x}", "{tag}:1", "{}y", "}z{", "ü\\xff"}) {
    EXPECT_NE(found.find("\n" + std::string(name) + " "), std::string::npos) << name << "\n" << found;
  }
  EXPECT_EQ(Json::parse(run({"ls", "--json"}).out).size(), odd.size());
  EXPECT_EQ(names({"a\\**"}), std::vector<std::string>{"a*b"});
  EXPECT_EQ(names({"a\\*b"}), std::vector<std::string>{"a*b"});
  EXPECT_EQ(names({"x*"}), (std::vector<std::string>{"x", "x:{x}"}));
}

TEST_F(ToolLs, ThePrefixIsTakenAsItIsAndNotShown) {
  Client prefixed(server_.url_unix(), {.key_prefix = "a*:"});
  const Lease mine = prefixed.try_acquire("nightly").lease().value();
  hold("ab:nightly");
  EXPECT_EQ(names({"--prefix", "a*:"}), std::vector<std::string>{"nightly"});
  EXPECT_EQ(names({"--prefix", "a*:", "n*"}), std::vector<std::string>{"nightly"});
  EXPECT_EQ(names({"--prefix", "a"}), (std::vector<std::string>{"*:nightly", "b:nightly"}));
}

TEST_F(ToolLs, LooksAtAHundredThousandOtherKeysAPageAtATime) {
  fill(100'000, "other:");
  hold("nightly");
  Monitor monitor(server_.unix_socket());
  EXPECT_EQ(names({}), std::vector<std::string>{"nightly"});
  std::size_t scans = 0;
  for (const auto& line : monitor.lines()) {
    EXPECT_NE(line.name(), "KEYS");
    if (line.name() != "SCAN") continue;
    ++scans;
    EXPECT_EQ(line.argv.back(), "500");
  }
  EXPECT_GE(scans, 100U);
  EXPECT_LE(scans, 1'000U);
}

TEST_F(ToolLs, ListsThousandsOfLeases) {
  for (int i = 0; i < 5'000; ++i) hold("order:" + std::to_string(i));
  EXPECT_EQ(names({}).size(), 5'000U);
  for (Lease& lease : held_) lease.abandon();
}

TEST_F(ToolLs, NamesTooLongForOnePageAreAskedForInSmallerOnes) {
  fill(1'000, std::string(8'000, 'k'));
  hold("nightly");
  raw_.command({"SET", "foreign", "someone", "PX", "100000"});
  EXPECT_EQ(names({"--all"}), (std::vector<std::string>{"foreign", "nightly"}));
}

TEST_F(ToolLs, KeysThatVanishMeanwhileAreNoTrouble) {
  std::jthread churn([&](const std::stop_token& over) {
    Client client(server_.url_unix());
    while (!over.stop_requested()) {
      for (int i = 0; i < 50; ++i) (void)client.try_acquire("order:" + std::to_string(i), {.ttl = Millis(20)});
    }
  });
  hold("stays");
  for (int i = 0; i < 20; ++i) {
    const auto found = names({"--all", "s*"});
    EXPECT_EQ(found, std::vector<std::string>{"stays"});
    EXPECT_EQ(run({"ls", "--all"}).exit, 0);
  }
}

TEST_F(ToolLs, WhatIsDeniedIsToldWithTheRuleThatAllowsIt) {
  raw_.command({"ACL", "SETUSER", "weak", "on", ">word", "~*", "&*", "+@all", "-scan"});
  const auto denied = run({"ls", "--url", "unix://weak:word@" + server_.socket_path()});
  EXPECT_EQ(denied.exit, 77);
  EXPECT_NE(denied.err.find("+scan"), std::string::npos) << denied.err;
  EXPECT_EQ(run({"ls", "nightly", "--url", "unix://weak:word@" + server_.socket_path()}).exit, 0);
  raw_.command({"ACL", "SETUSER", "weak", "+scan", "-pttl"});
  raw_.set("data", "x");
  EXPECT_EQ(run({"ls", "--all", "--url", "unix://weak:word@" + server_.socket_path()}).exit, 77);
}

TEST_F(ToolLs, NothingIsAnEmptyList) {
  const auto text = run({"ls"});
  EXPECT_EQ(text.exit, 0);
  EXPECT_EQ(text.out, "");
  EXPECT_NE(text.err.find("nothing is leased"), std::string::npos);
  EXPECT_EQ(run({"ls", "--quiet"}).err, "");
  EXPECT_EQ(Json::parse(run({"ls", "--json"}).out), Json::array());
  EXPECT_EQ(run({"ls", "--url", "memory:"}).exit, 64);
  EXPECT_EQ(run({"ls", "--url", "unix:///nowhere/redis.sock"}).exit, 69);
}

TEST_F(ToolLs, FitsTheTerminal) {
  hold("a name that is rather long for a terminal of so few columns: " + std::string(80, 'x'));
  hold("日本語の名前" + std::string(60, 'y'));
  for (const unsigned short columns : std::initializer_list<unsigned short>{20, 40, 60, 80, 132}) {
    Terminal terminal({"ls"}, server_.url_unix(), 24, columns);
    ASSERT_EQ(terminal.wait(), 0);
    ASSERT_TRUE(becomes([&] { return terminal.seen().ends_with("\n"); }));
    std::string text = terminal.seen();
    for (auto at = text.find("\x1b["); at != text.npos; at = text.find("\x1b[")) {
      text.erase(at, text.find('m', at) - at + 1);
    }
    std::size_t lines = 0;
    for (std::size_t at = 0; at < text.size(); ++lines) {
      const std::size_t end = std::min(text.find("\r\n", at), text.size());
      std::size_t width = 0;
      for (const char c : text.substr(at, end - at)) {
        const auto byte = static_cast<unsigned char>(c);
        width += byte < 0x80 || byte >= 0xc0 ? (byte >= 0xe3 && byte < 0xf0 ? 2 : 1) : 0;
      }
      EXPECT_LE(width, columns) << text;
      at = end + 2;
    }
    EXPECT_EQ(lines, 3U) << text;
  }
}

TEST_F(ToolLs, AnInterruptEndsAPassThatTakesLong) {
  // A server that has always another page.
  ScriptedServer endless([](const ScriptedServer::Command& command) -> std::string {
    if (command.at(0) != "SCAN") return "+OK\r\n";
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return "*2\r\n$1\r\n7\r\n*0\r\n";
  });
  Tool tool({"ls"}, {.url = endless.url()});
  ASSERT_TRUE(becomes([&] { return endless.commands().size() > 10; }));
  tool.signal(SIGINT);
  EXPECT_EQ(tool.wait(Millis(5'000)).exit, 130);
}

}  // namespace
}  // namespace redlease
