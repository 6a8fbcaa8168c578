// A good deployment; how the doctor speaks; and what it leaves behind, which is nothing.
#include <signal.h>

#include <set>
#include <sstream>

#include "cli/doctor/host_facts.hpp"
#include "support/monitor.hpp"
#include "support/scripted_server.hpp"
#include "tool/doctor.hpp"

namespace redlease {
namespace {

class DoctorOfAGoodOne : public ::testing::TestWithParam<const char*> {
 protected:
  // What is less than the ttl after a start is rightly warned of.
  void grow_old() {
    ASSERT_TRUE(becomes([&] { return std::stoi(raw_.info("uptime_in_seconds")) >= 4; }, Millis(60'000)));
  }
  const Words options_{"--prefix", "billing:", "--ttl", "4s"};
  RedisServer server_{
      {"maxmemory 100mb", "maxmemory-policy noeviction", "appendonly yes", "appendfsync " + std::string(GetParam())}};
  RawClient raw_{server_.unix_socket()};
};

TEST_P(DoctorOfAGoodOne, GivesACleanBillAndLeavesNothingBehind) {
  Words rules = lease_rules();
  rules.insert(rules.end(), doctor_rules().begin(), doctor_rules().end());
  make_user(raw_, "~billing:*", rules);
  ASSERT_EQ(run_tool({"acquire", "held", "--prefix", "billing:", "--ttl", "1h"}, {.url = server_.url_unix()}).exit, 0);
  const auto before = raw_.keys();
  grow_old();
  raw_.command({"ACL", "LOG", "RESET"});
  const Examined examined = examine(url_as_limited(server_), options_);
  EXPECT_EQ(examined.exit, 0) << examined.json;
  for (const Json& check : examined.json.at("checks")) {
    // On a machine that is busy enough the rate of a clock can not be measured.
    const bool well = check.at("status") == "ok" || (check.at("id") == "clock.rate" && check.at("status") == "unknown");
    EXPECT_TRUE(well) << check;
    EXPECT_NE(check.at("found"), "");
  }
  EXPECT_GE(examined.json.at("checks").size(), 24U);
  EXPECT_EQ(raw_.keys(), before);
  const RawReply log = raw_.command({"ACL", "LOG"});
  EXPECT_TRUE(log.elements.empty()) << to_string(log);
}

INSTANTIATE_TEST_SUITE_P(Fsync, DoctorOfAGoodOne, ::testing::Values("always", "everysec"),
                         [](const auto& row) { return row.param; });

class Doctor : public ::testing::Test {
 protected:
  ToolResult run(Words options) {
    options.insert(options.begin(), {"doctor", "--server-only"});
    return run_tool(options, {.url = server_.url_unix()}, Millis(60'000));
  }
  RedisServer server_;
  RawClient raw_{server_.unix_socket()};
};

TEST_F(Doctor, WritesToTheScratchKeyAloneAndChangesNoSetting) {
  Monitor monitor(server_.unix_socket());
  EXPECT_EQ(run({"--scratch-key", "tried", "--prefix", "billing:"}).exit, 2);
  std::set<std::string> asked;
  for (const MonitorLine& line : monitor.lines()) {
    const std::string name = line.name();
    asked.insert(name == "CONFIG" || name == "CLIENT" || name == "PUBSUB" ? name + " " + line.argv.at(1) : name);
    const bool writes =
        std::set<std::string>{"SET", "DEL", "PEXPIRE", "ZADD", "ZREM", "ZPOPMIN", "HSET", "HDEL"}.contains(name);
    if (!writes) continue;
    EXPECT_TRUE(line.argv.at(1) == "billing:tried" ||
                line.argv.at(1).starts_with("billing:tried:{billing:tried}lease:"))
        << line.line;
  }
  const std::set<std::string> known{"CLIENT SETNAME", "CONFIG GET",    "DEL",    "EVAL",  "EVALSHA",   "EXISTS", "GET",
                                    "HDEL",           "HGET",          "HSET",   "INFO",  "PEXPIRE",   "PING",   "PTTL",
                                    "PUBLISH",        "PUBSUB NUMSUB", "SCAN",   "SET",   "SUBSCRIBE", "TIME",   "ZADD",
                                    "ZCARD",          "ZPOPMIN",       "ZRANGE", "ZRANK", "ZREM",      "ZSCORE"};
  for (const std::string& name : asked) EXPECT_TRUE(known.contains(name)) << name;
  EXPECT_TRUE(asked.contains("SCAN"));
  EXPECT_EQ(raw_.keys(), Words{});
}

TEST_F(Doctor, TellsTheWorstFirstAndInShortWithQuiet) {
  const auto whole = run({});
  EXPECT_EQ(whole.exit, 2);
  EXPECT_EQ(whole.err, "");
  const auto at = [&](const std::string& part) { return whole.out.find(part); };
  EXPECT_TRUE(whole.out.starts_with(server_.url_unix().substr(0, 7))) << whole.out;
  EXPECT_LT(at("\nfail     durability.persistence"), at("\nwarn     durability.restart")) << whole.out;
  EXPECT_LT(at("\nwarn     durability.restart"), at("\nok       topology.product")) << whole.out;
  EXPECT_NE(at("risk: a restart"), std::string::npos);
  EXPECT_NE(at("mend: `CONFIG SET appendonly yes`"), std::string::npos);
  EXPECT_NE(at("\n1 failure, 1 warning, "), std::string::npos) << whole.out;
  const auto quiet = run({"--quiet"});
  EXPECT_EQ(quiet.exit, 2);
  EXPECT_TRUE(quiet.out.starts_with("fail     durability.persistence")) << quiet.out;
  EXPECT_EQ(quiet.out.find("ok  "), std::string::npos) << quiet.out;
  EXPECT_EQ(quiet.out.find("1 failure"), std::string::npos) << quiet.out;
}

TEST_F(Doctor, WarningsAloneAreExit1) {
  raw_.config_set("appendonly", "yes");
  EXPECT_EQ(run({"--ttl", "20h"}).exit, 1);
}

TEST_F(Doctor, RefusesAScratchKeyThatIsInUse) {
  ASSERT_EQ(run_tool({"acquire", "nightly", "--ttl", "1h"}, {.url = server_.url_unix()}).exit, 0);
  const auto before = raw_.keys();
  EXPECT_EQ(run({"--scratch-key", "nightly"}).exit, 64);
  raw_.del("nightly");
  const auto of_its_fence = run({"--scratch-key", "nightly"});
  EXPECT_EQ(of_its_fence.exit, 64) << "its fence would be forgotten";
  EXPECT_NE(of_its_fence.err.find("lease:meta exists"), std::string::npos) << of_its_fence.err;
  EXPECT_EQ(raw_.keys().size() + 1, before.size());
}

TEST_F(Doctor, FlawedArgumentsAreAUsageError) {
  for (const Words& flawed : std::vector<Words>{{"--ttl", "0"},
                                                {"--ttl", "30"},
                                                {"--op-timeout", "20s"},
                                                {"--scratch-key", "xlease:meta"},
                                                {"--node", "http://x"},
                                                {"extra"}}) {
    EXPECT_EQ(run(flawed).exit, 64) << ::testing::PrintToString(flawed);
  }
  EXPECT_EQ(raw_.keys(), Words{});
}

TEST_F(Doctor, WhatOthersWroteCannotPlayWithTheTerminal) {
  raw_.set("billing:\x1b[31m", "x");
  const auto result = run({"--prefix", "billing:"});
  EXPECT_NE(result.out.find("billing:\\x1b[31m"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find('\x1b'), std::string::npos);
}

TEST_F(Doctor, InterruptedItEndsAtOnceAndLeavesNothing) {
  for (const auto& [signal, exit] : {std::pair{SIGINT, 130}, std::pair{SIGTERM, 143}}) {
    Tool tool({"doctor", "--scratch-key", "tried"}, {.url = server_.url_unix()});
    ASSERT_TRUE(becomes([&] { return raw_.exists("tried:{tried}lease:meta"); }));
    tool.signal(signal);
    EXPECT_EQ(tool.wait(Millis(10'000)).exit, exit);
    EXPECT_EQ(raw_.keys(), Words{});
  }
}

TEST_F(Doctor, KilledItLeavesNothingThatStaysLongerThanAMinute) {
  Tool tool({"doctor", "--scratch-key", "tried"}, {.url = server_.url_unix()});
  ASSERT_TRUE(becomes([&] {
    const auto left = raw_.pttl("tried:{tried}lease:meta");
    return left > 0 && left <= 60'000;
  }));
  tool.signal(SIGSTOP);
  const bool held = raw_.exists("tried");
  tool.signal(SIGKILL);
  EXPECT_EQ(tool.wait().exit, -SIGKILL);
  for (const std::string& key : raw_.keys()) {
    const auto left = raw_.pttl(key);
    EXPECT_TRUE(left == -2 || (left > 0 && left <= 60'000)) << key << " " << left << " " << held;
  }
}

TEST_F(Doctor, AServerThatFallsSilentIsNotWaitedForAtEveryQuestion) {
  server_.stop();
  const Deadline begun = LeaseClock::now();
  EXPECT_EQ(run({}).exit, 69);
  EXPECT_LT(LeaseClock::now() - begun, Millis(10'000));
  server_.cont();
  // One that answers at first, and then no more.
  int answered = 0;
  ScriptedServer mute([&](const ScriptedServer::Command& command) -> std::string {
    return ++answered > 2 ? "" : command[0] == "TIME" ? "*2\r\n$1\r\n1\r\n$1\r\n1\r\n" : "+OK\r\n";
  });
  const Examined examined = examine(mute.url());
  EXPECT_EQ(examined.exit, 3) << examined.json;
  EXPECT_LT(LeaseClock::now() - begun, Millis(30'000));
}

TEST(DoctorHost, ASuspendAndAThrottledGroupAreWarnedOf) {
  using namespace cli::doctor;
  using namespace std::chrono_literals;
  const auto stat = [](const std::string& text) {
    std::istringstream in(text);
    return throttled(cpu_stat(in));
  };
  EXPECT_EQ(suspended(0ns).status, Status::ok);
  EXPECT_EQ(suspended(-600ns).status, Status::ok);
  EXPECT_EQ(suspended(90min).status, Status::warn);
  EXPECT_EQ(suspended(90min).found, "for 1 h 30 min since it started");
  EXPECT_EQ(stat("usage_usec 5\nnr_periods 1000\nnr_throttled 10\nthrottled_usec 7\n").status, Status::warn);
  EXPECT_EQ(stat("nr_periods 1000\nnr_throttled 9\n").status, Status::ok);
  EXPECT_EQ(stat("nr_periods 0\nnr_throttled 0\n").status, Status::ok);
  EXPECT_EQ(stat("usage_usec 5\n").status, Status::unknown);
  EXPECT_EQ(stat("").status, Status::unknown);
  EXPECT_EQ(stat("nr_periods x\n").status, Status::unknown);
}

TEST(DoctorHost, TheHostIsLookedAtUnlessToldOtherwise) {
  RedisServer server;
  const auto with = run_tool({"doctor", "--json"}, {.url = server.url_unix()});
  EXPECT_NE(with.out.find("\"host.suspended\""), std::string::npos) << with.out;
  EXPECT_NE(with.out.find("\"host.throttled\""), std::string::npos) << with.out;
}

}  // namespace
}  // namespace redlease
