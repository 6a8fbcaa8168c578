// show, break and wait by the real binary.
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "redlease/redlease.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "tool/tool.hpp"

namespace redlease {
namespace {

using Json = nlohmann::json;

class ToolShow : public ::testing::Test {
 protected:
  ToolResult run(const std::vector<std::string>& arguments) { return run_tool(arguments, {.url = server_.url_unix()}); }
  Json json_of(const std::vector<std::string>& arguments) { return Json::parse(run(arguments).out); }

  RedisServer server_;
  RawClient raw_{server_.unix_socket()};
  Client client_{server_.url_unix()};
  const LeaseOptions long_{.ttl = Millis(600'000), .label = "the night's run"};
};

TEST_F(ToolShow, TellsWhoHoldsIt) {
  const LeaseGuard lease(client_, "nightly", long_);
  const auto text = run({"show", "nightly"});
  EXPECT_EQ(text.exit, 0);
  EXPECT_NE(text.out.find("state     held\n"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("label     the night's run\n"), std::string::npos) << text.out;
  const Json json = json_of({"show", "nightly", "--json"});
  EXPECT_EQ(json.at("key"), "nightly");
  EXPECT_EQ(json.at("held"), true);
  EXPECT_TRUE(json.at("holder").get<std::string>().ends_with(":" + std::to_string(::getpid())));
  EXPECT_EQ(json.at("label"), "the night's run");
  EXPECT_GT(json.at("remaining_ms"), 500'000);
  EXPECT_EQ(json.at("fence"), static_cast<std::uint64_t>(lease.fencing_token()));
  EXPECT_EQ(json.at("waiters"), 0);
}

TEST_F(ToolShow, TellsWhoWaitsAndForHowLong) {
  const LeaseGuard lease(client_, "nightly", long_);
  Tool waiter({"acquire", "nightly", "--wait", "forever", "--label", "patient"}, {.url = server_.url_unix()});
  ASSERT_TRUE(becomes([&] { return json_of({"show", "nightly", "--json"}).at("waiters") == 1; }));
  const Json queue = json_of({"show", "nightly", "--json"}).at("queue");
  EXPECT_TRUE(queue.at(0).at("waiter").get<std::string>().ends_with(":" + std::to_string(waiter.pid()) + " patient"));
  EXPECT_GE(queue.at(0).at("waited_ms"), 0);
  EXPECT_NE(run({"show", "nightly"}).out.find("1. "), std::string::npos);
}

TEST_F(ToolShow, AFreeKeyIsFreeAndAForeignOneIsHeld) {
  const Json free = json_of({"show", "nightly", "--json"});
  EXPECT_EQ(free.at("held"), false);
  EXPECT_EQ(free.at("remaining_ms"), nullptr);
  raw_.set("nightly", "someone");
  EXPECT_EQ(json_of({"show", "nightly", "--json"}).at("held"), true);
  const auto text = run({"show", "nightly"});
  EXPECT_NE(text.out.find("never"), std::string::npos) << text.out;
}

TEST_F(ToolShow, WhatOthersWroteCannotPlayWithTheTerminal) {
  auto lease = client_.try_acquire("bell\x1b[31m\xff", {.label = "a\x07z"}).lease();
  const auto text = run({"show", "bell\x1b[31m\xff"});
  EXPECT_NE(text.out.find("bell\\x1b[31m\\xff"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("a\\x07z"), std::string::npos) << text.out;
  EXPECT_EQ(json_of({"show", "bell\x1b[31m\xff", "--json"}).at("held"), true);
}

TEST_F(ToolShow, BreakWantsAYesAndThenTakesTheLeaseAway) {
  LeaseGuard lease(client_, "nightly", long_);
  const auto asked = run({"break", "nightly"});
  EXPECT_EQ(asked.exit, 64);
  EXPECT_TRUE(raw_.exists("nightly"));
  EXPECT_EQ(run({"break", "nightly", "--yes"}).exit, 0);
  EXPECT_FALSE(raw_.exists("nightly"));
  EXPECT_EQ(json_of({"break", "nightly", "--yes", "--json"}).at("broken"), false);
  raw_.command({"LPUSH", "list", "1"});
  EXPECT_EQ(run({"break", "list", "--yes"}).exit, 65);
}

TEST_F(ToolShow, WaitEndsWhenTheKeyIsFreeAndTakesNothing) {
  raw_.command({"SET", "nightly", "someone", "PX", "300"});
  EXPECT_EQ(run({"wait", "nightly"}).exit, 0);
  EXPECT_EQ(raw_.keys(), std::vector<std::string>{});
}

TEST_F(ToolShow, WaitInVainIsBusyAndTellsForWhom) {
  raw_.set("nightly", "someone");
  const auto result = run({"wait", "nightly", "--wait", "200ms"});
  EXPECT_EQ(result.exit, 75);
  EXPECT_NE(result.err.find("held by another"), std::string::npos) << result.err;
  Tool tool({"wait", "nightly"}, {.url = server_.url_unix()});
  ASSERT_TRUE(becomes([&] { return tool_is_connected(raw_); }));
  tool.signal(SIGINT);
  EXPECT_EQ(tool.wait(Millis(2'000)).exit, 130);
}

TEST_F(ToolShow, WaitGoesOnThroughARestartAndEndsAtOnceWhereItIsDenied) {
  raw_.set("nightly", "someone");
  Tool tool({"wait", "nightly", "--wait", "20s"}, {.url = server_.url_unix()});
  ASSERT_TRUE(becomes([&] { return tool_is_connected(raw_); }));
  server_.restart();
  EXPECT_EQ(tool.wait().exit, 0);
  RawClient(server_.unix_socket()).command({"ACL", "SETUSER", "weak", "on", ">word", "~other:*", "+@all"});
  EXPECT_EQ(run({"wait", "nightly", "--url", "unix://weak:word@" + server_.socket_path()}).exit, 77);
}

}  // namespace
}  // namespace redlease
