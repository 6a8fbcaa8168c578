// watch by the real binary: lines in a pipe, a table on a terminal.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "redlease/redlease.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "tool/terminal.hpp"
#include "tool/tool.hpp"

namespace redlease {
namespace {

using Json = nlohmann::json;

class ToolWatch : public ::testing::Test {
 protected:
  std::unique_ptr<Tool> watch(std::vector<std::string> arguments = {}) {
    arguments.insert(arguments.begin(), {"watch", "--interval", "20ms"});
    return std::make_unique<Tool>(arguments, ToolSetup{.url = server_.url_unix()});
  }
  static bool says(const Tool& tool, const std::string& text) {
    return becomes([&] { return tool.out().find(text) != std::string::npos; });
  }
  Lease acquired(const std::string& key, Millis ttl = Millis(600'000)) {
    return client_.try_acquire(key, {.ttl = ttl, .label = "night"}).lease().value();
  }

  RedisServer server_;
  Client client_{server_.url_unix()};
};

TEST_F(ToolWatch, TellsALineForEachChange) {
  Lease first = acquired("nightly");
  const auto tool = watch();
  ASSERT_TRUE(says(*tool, "nightly held by ")) << tool->out() << tool->err();
  Lease other = acquired("stock");
  ASSERT_TRUE(says(*tool, "stock acquired by ")) << tool->out();
  Tool waiter({"acquire", "nightly", "--wait", "forever", "--label", "patient"}, {.url = server_.url_unix()});
  ASSERT_TRUE(says(*tool, "nightly waiters 1\n")) << tool->out();
  first.release();
  ASSERT_TRUE(says(*tool, "nightly handed over from ")) << tool->out();
  ASSERT_TRUE(says(*tool, "(patient), fence ")) << tool->out();
  other.release();
  ASSERT_TRUE(says(*tool, "stock released by ")) << tool->out();
  acquired("short", Millis(2'000)).abandon();
  ASSERT_TRUE(says(*tool, "short lost by ")) << tool->out();
  tool->signal(SIGTERM);
  EXPECT_EQ(tool->wait(Millis(5'000)).exit, 128 + SIGTERM);
  EXPECT_EQ(tool->out().find('\x1b'), std::string::npos);
}

TEST_F(ToolWatch, RenewalsAreNotShown) {
  LeaseGuard guard(client_, "nightly", {.ttl = Millis(900)});
  const auto tool = watch({"--for", "2s"});
  const auto result = tool->wait();
  EXPECT_EQ(result.exit, 0);
  EXPECT_EQ(std::ranges::count(result.out, '\n'), 1) << result.out;
}

TEST_F(ToolWatch, WithJsonEachLineIsADocument) {
  const Lease first = acquired("n");
  const auto tool = watch({"--json", "n*"});
  ASSERT_TRUE(says(*tool, "\"held\"")) << tool->out();
  Lease mine = acquired("nightly");
  acquired("stock").release();
  ASSERT_TRUE(says(*tool, "\"acquired\"")) << tool->out();
  mine.release();
  ASSERT_TRUE(says(*tool, "\"released\"")) << tool->out();
  std::istringstream lines(tool->out());
  std::vector<Json> all;
  for (std::string line; std::getline(lines, line);) all.push_back(Json::parse(line));
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[1].at("key"), "nightly");
  EXPECT_EQ(all[1].at("label"), "night");
  EXPECT_GT(all[1].at("fence"), 0);
  EXPECT_EQ(all[1].at("at").get<std::string>().size(), std::string("2026-03-01T12:00:00.000Z").size());
  EXPECT_TRUE(all[2].at("holder").get<std::string>().ends_with(":" + std::to_string(::getpid())));
}

TEST_F(ToolWatch, EndsQuietlyWhenTheReaderHasGoneAlsoWithNothingToSay) {
  const auto result =
      run_tool({"watch", "--interval", "20ms"}, {.url = server_.url_unix(), .closed_output = true}, Millis(10'000));
  EXPECT_EQ(result.exit, 0);
  EXPECT_EQ(result.err, "");
  const Lease mine = acquired("nightly");
  const auto told =
      run_tool({"watch", "--interval", "20ms"}, {.url = server_.url_unix(), .closed_output = true}, Millis(10'000));
  EXPECT_EQ(told.exit, 0);
  EXPECT_EQ(told.err, "");
}

TEST_F(ToolWatch, AServerThatGoesAwayIsToldOnceAndAskedAgain) {
  const Lease mine = acquired("nightly");
  const auto tool = watch();
  ASSERT_TRUE(says(*tool, "nightly held"));
  server_.kill9();
  ASSERT_TRUE(says(*tool, "trying again")) << tool->out();
  ::usleep(200'000);
  server_.restart();
  ASSERT_TRUE(says(*tool, "answers again")) << tool->out();
  ASSERT_TRUE(says(*tool, "nightly released")) << tool->out();  // the server has forgotten it
  const std::string out = tool->out();
  EXPECT_EQ(out.find("trying again"), out.rfind("trying again")) << out;
}

TEST_F(ToolWatch, WhatCannotWorkIsToldAtOnce) {
  EXPECT_EQ(run_tool({"watch"}, {.url = "unix:///nowhere/redis.sock"}).exit, 69);
  EXPECT_EQ(run_tool({"watch"}, {.url = "memory:"}).exit, 64);
  EXPECT_EQ(run_tool({"watch", "--interval", "1ms"}, {.url = server_.url_unix()}).exit, 64);
  RawClient raw(server_.unix_socket());
  raw.command({"ACL", "SETUSER", "weak", "on", ">word", "~*", "&*", "+@all", "-scan"});
  EXPECT_EQ(run_tool({"watch"}, {.url = "unix://weak:word@" + server_.socket_path()}).exit, 77);
  raw.command({"LPUSH", "list", "1"});
  EXPECT_EQ(run_tool({"watch", "list"}, {.url = server_.url_unix()}).exit, 65);
}

TEST_F(ToolWatch, AFullDiskIsAnError) {
  const Lease mine = acquired("nightly");
  const auto result = run_tool({"watch"}, {.url = server_.url_unix(), .output_file = "/dev/full"});
  EXPECT_EQ(result.exit, 1);
  EXPECT_NE(result.err.find("No space left"), std::string::npos) << result.err;
}

class ToolWatchTerminal : public ToolWatch {
 protected:
  static bool shows(const Terminal& terminal, const std::string& text) {
    return becomes([&] {
      return std::ranges::any_of(terminal.picture(), [&](const auto& line) { return line.find(text) != line.npos; });
    });
  }
};

TEST_F(ToolWatchTerminal, RedrawsATableInPlaceAndPutsTheTerminalRight) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Lease mine = acquired("nightly");
    Terminal terminal({"watch", "--interval", "20ms"}, server_.url_unix());
    ASSERT_TRUE(shows(terminal, "1 held, 0 waiting")) << terminal.seen();
    ASSERT_TRUE(shows(terminal, "nightly  ")) << terminal.seen();
    mine.release();
    ASSERT_TRUE(shows(terminal, "0 held, 0 waiting")) << terminal.seen();
    terminal.signal(signal);
    EXPECT_EQ(terminal.wait(Millis(5'000)), 128 + signal);
    const std::string seen = terminal.seen();
    EXPECT_TRUE(seen.starts_with("\x1b[?1049h\x1b[?25l")) << seen;
    EXPECT_TRUE(becomes([&] { return terminal.seen().find("\x1b[?25h\x1b[?1049l") != std::string::npos; }));
  }
}

TEST_F(ToolWatchTerminal, FollowsTheSizeOfTheTerminal) {
  std::vector<Lease> held;
  for (int i = 0; i < 30; ++i) held.push_back(acquired("a name of a lease that is rather long " + std::to_string(i)));
  Terminal terminal({"watch", "--interval", "60s"}, server_.url_unix(), 40, 120);
  ASSERT_TRUE(becomes([&] { return terminal.picture().size() == 33; })) << terminal.seen();
  terminal.resize(10, 30);
  ASSERT_TRUE(becomes([&] { return terminal.picture().size() == 10; })) << terminal.seen();
  const auto picture = terminal.picture();
  EXPECT_NE(picture.back().find(" more"), std::string::npos) << picture.back();
  for (const auto& line : picture) {
    const auto columns =
        std::ranges::count_if(line, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
    EXPECT_LE(columns, 30) << line;
  }
}

TEST_F(ToolWatchTerminal, TellsThatTheServerHasGoneAndGoesOnWhenItIsBack) {
  const Lease mine = acquired("nightly");
  Terminal terminal({"watch", "--interval", "20ms"}, server_.url_unix(), 24, 200);
  ASSERT_TRUE(shows(terminal, "1 held"));
  server_.kill9();
  ASSERT_TRUE(shows(terminal, "trying again")) << terminal.seen();
  server_.restart();
  ASSERT_TRUE(shows(terminal, "0 held")) << terminal.seen();
}

TEST_F(ToolWatchTerminal, GivesTheTerminalBackWhileItIsSuspended) {
  const Lease mine = acquired("nightly");
  Terminal terminal({"watch", "--interval", "20ms"}, server_.url_unix());
  ASSERT_TRUE(shows(terminal, "1 held"));
  terminal.signal(SIGTSTP);
  ASSERT_TRUE(becomes([&] { return terminal.seen().ends_with("\x1b[?25h\x1b[?1049l"); })) << terminal.seen();
  terminal.signal(SIGCONT);
  ASSERT_TRUE(becomes([&] { return terminal.picture().size() > 2 && !terminal.seen().ends_with("\x1b[?1049l"); }));
  terminal.signal(SIGINT);
  EXPECT_EQ(terminal.wait(Millis(5'000)), 130);
}

}  // namespace
}  // namespace redlease
