// trace by the real binary.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "redlease/redlease.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "tool/tool.hpp"

namespace redlease {
namespace {

using Json = nlohmann::json;

std::string content(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class ToolTrace : public ::testing::Test {
 protected:
  ToolResult run(const std::vector<std::string>& arguments, ToolSetup setup = {}) {
    setup.url = server_.url_unix();
    return run_tool(arguments, setup);
  }
  std::string file(const std::string& name) const { return directory_.path() + "/" + name; }
  std::ptrdiff_t files() const { return entries(directory_.path().c_str()); }

  RedisServer server_;
  TempDir directory_;
  RawClient raw_{server_.unix_socket()};
  Client client_{server_.url_unix()};
};

TEST_F(ToolTrace, DrawsWhoHeldAndWhoWaited) {
  Lease mine = client_.try_acquire("nightly", {.ttl = Millis(600'000), .label = "first"}).lease().value();
  const std::string svg = file("out.svg");
  Tool trace({"trace", "nightly", "--for", "60s", "--interval", "10ms", "--output", svg, "--json"},
             {.url = server_.url_unix()});
  ASSERT_TRUE(becomes([&] { return tool_is_connected(raw_); }));
  Tool second({"acquire", "nightly", "--wait", "forever", "--label", "second"}, {.url = server_.url_unix()});
  ASSERT_TRUE(becomes([&] { return client_.inspect("nightly").value().waiters == 1; }));
  ::usleep(300'000);  // so long it waits
  mine.release();
  ASSERT_EQ(second.wait().exit, 0);
  ::usleep(300'000);  // so long it holds
  trace.signal(SIGINT);
  const auto result = trace.wait(Millis(10'000));
  EXPECT_EQ(result.exit, 130) << result.err;  // and yet what was seen is drawn
  const Json json = Json::parse(result.out);
  const Json& spans = json.at("keys").at(0).at("spans");
  ASSERT_EQ(spans.size(), 3U) << result.out;
  const std::string other = ":" + std::to_string(second.pid()) + " second";
  EXPECT_TRUE(spans[0].at("who").get<std::string>().ends_with(":" + std::to_string(::getpid()) + " first"));
  EXPECT_EQ(spans[0].at("what"), "held");
  EXPECT_TRUE(spans[1].at("who").get<std::string>().ends_with(other));
  EXPECT_EQ(spans[1].at("what"), "waited");
  EXPECT_TRUE(spans[2].at("who").get<std::string>().ends_with(other));
  EXPECT_EQ(spans[2].at("what"), "held");
  EXPECT_EQ(spans[0].at("to_ms"), spans[2].at("from_ms"));
  EXPECT_EQ(spans[1].at("to_ms"), spans[2].at("from_ms"));
  EXPECT_GT(spans[2].at("fence"), spans[0].at("fence"));
  EXPECT_EQ(spans[2].at("goes_on"), true);
  const std::string drawing = content(svg);
  EXPECT_TRUE(drawing.starts_with("<svg ")) << drawing;
  EXPECT_TRUE(drawing.ends_with("</svg>\n"));
  EXPECT_NE(drawing.find(other + "</text>"), std::string::npos);
  EXPECT_EQ(files(), 1);
}

TEST_F(ToolTrace, FindsKeysByAPattern) {
  const Lease mine = client_.try_acquire("stock:7", {.ttl = Millis(600'000)}).lease().value();
  Tool trace({"trace", "--pattern", "stock:*", "--for", "4s", "--interval", "10ms"}, {.url = server_.url_unix()});
  ASSERT_TRUE(becomes([&] { return tool_is_connected(raw_); }));
  const Lease late = client_.try_acquire("stock:8", {.ttl = Millis(600'000)}).lease().value();
  const Lease other = client_.try_acquire("nightly", {.ttl = Millis(600'000)}).lease().value();
  const auto result = trace.wait();
  EXPECT_EQ(result.exit, 0);
  EXPECT_NE(result.out.find(">stock:7</text>"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find(">stock:8</text>"), std::string::npos);
  EXPECT_EQ(result.out.find(">nightly</text>"), std::string::npos);
}

TEST_F(ToolTrace, AServerThatIsSilentForAWhileIsAGap) {
  Tool trace({"trace", "nightly", "--for", "60s", "--interval", "20ms", "--json"}, {.url = server_.url_unix()});
  ASSERT_TRUE(becomes([&] { return tool_is_connected(raw_); }));
  ::usleep(300'000);  // for the first look
  server_.kill9();
  ASSERT_TRUE(becomes([&] { return trace.err().find("trying again") != std::string::npos; })) << trace.err();
  server_.restart();
  ASSERT_TRUE(becomes([&] { return trace.err().find("answers again") != std::string::npos; })) << trace.err();
  trace.signal(SIGTERM);
  const auto result = trace.wait(Millis(10'000));
  EXPECT_EQ(result.exit, 128 + SIGTERM);
  EXPECT_EQ(Json::parse(result.out).at("keys").at(0).at("silent").size(), 1U) << result.out;
}

TEST_F(ToolTrace, AFullDiskIsAnErrorAndLeavesNoHalfFile) {
  const std::vector<std::string> arguments{"trace", "nightly", "--for", "20ms", "--interval", "10ms"};
  auto with = [&](const std::string& output) {
    auto all = arguments;
    all.insert(all.end(), {"--output", output});
    return all;
  };
  const auto full = run(with("/dev/full"));
  EXPECT_EQ(full.exit, 1);
  EXPECT_NE(full.err.find("/dev/full: No space left"), std::string::npos) << full.err;
  struct stat device {};
  ASSERT_EQ(::stat("/dev/full", &device), 0);
  EXPECT_TRUE(S_ISCHR(device.st_mode));
  EXPECT_EQ(run(arguments, {.output_file = "/dev/full"}).exit, 1);

  std::ofstream(file("out.svg")) << "what was there before";
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 1'024;  // less than any drawing; the tool inherits it
  ::setrlimit(RLIMIT_FSIZE, &small);
  Tool tool(with(file("out.svg")), {.url = server_.url_unix()});
  ::setrlimit(RLIMIT_FSIZE, &before);
  const auto limited = tool.wait();
  EXPECT_EQ(limited.exit, 1) << limited.err;
  EXPECT_NE(limited.err.find("File too large"), std::string::npos) << limited.err;
  EXPECT_EQ(content(file("out.svg")), "what was there before");
  EXPECT_EQ(files(), 1);
}

TEST_F(ToolTrace, APlaceThatCannotBeWrittenToIsToldBeforeTheWork) {
  const auto result = run({"trace", "nightly", "--for", "1h", "--output", file("no/such/dir.svg")});
  EXPECT_EQ(result.exit, 1);
  EXPECT_NE(result.err.find("No such file"), std::string::npos) << result.err;
}

TEST_F(ToolTrace, WritesThroughALinkAndKeepsTheMode) {
  std::ofstream(file("real.svg")) << "old";
  ::chmod(file("real.svg").c_str(), 0640);
  std::filesystem::create_symlink("real.svg", file("link.svg"));
  EXPECT_EQ(run({"trace", "nightly", "--for", "20ms", "--interval", "10ms", "--output", file("link.svg")}).exit, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(file("link.svg")));
  EXPECT_TRUE(content(file("real.svg")).starts_with("<svg "));
  struct stat there {};
  ::stat(file("real.svg").c_str(), &there);
  EXPECT_EQ(there.st_mode & 0777, 0640U);
  EXPECT_EQ(files(), 2);
  std::filesystem::create_symlink("to_come.svg", file("dangling.svg"));
  EXPECT_EQ(run({"trace", "nightly", "--for", "20ms", "--interval", "10ms", "--output", file("dangling.svg")}).exit, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(file("dangling.svg")));
  EXPECT_TRUE(std::filesystem::exists(file("to_come.svg")));
}

TEST_F(ToolTrace, KilledItLeavesWhatWasThereBefore) {
  std::ofstream(file("out.svg")) << "what was there before";
  {
    const Tool tool({"trace", "nightly", "--output", file("out.svg")}, {.url = server_.url_unix()});
    ASSERT_TRUE(becomes([&] { return files() == 2; }));
  }
  EXPECT_EQ(content(file("out.svg")), "what was there before");
}

TEST_F(ToolTrace, WhatCannotWorkIsToldAtOnce) {
  EXPECT_EQ(run({"trace"}).exit, 64);
  EXPECT_EQ(run({"trace", "nightly", "--for", "25h"}).exit, 64);
  EXPECT_EQ(run({"trace", "nightly", "--interval", "1ms"}).exit, 64);
  EXPECT_EQ(run({"trace", "nightly", "--for", "10ms"}).exit, 64);
  EXPECT_EQ(run({"trace", ""}).exit, 64);
  EXPECT_EQ(run({"trace", "nightly", "--url", "memory:"}).exit, 64);
  EXPECT_EQ(run({"trace", "nightly", "--url", "unix:///nowhere/redis.sock"}).exit, 69);
  RawClient(server_.unix_socket()).command({"LPUSH", "list", "1"});
  EXPECT_EQ(run({"trace", "list"}).exit, 65);
}

}  // namespace
}  // namespace redlease
