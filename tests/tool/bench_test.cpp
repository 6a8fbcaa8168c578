// bench by the real binary, and its figures alone.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/latencies.hpp"
#include "cli/table.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "tool/tool.hpp"

namespace redlease {
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;

TEST(Latencies, AQuantileIsTheTimeThatSoManyDidNotExceed) {
  cli::Latencies latencies;
  EXPECT_EQ(latencies.quantile(0.5).count(), 0);
  for (int i = 100; i > 0; --i) latencies.add(std::chrono::microseconds(i));
  EXPECT_EQ(latencies.quantile(0.5).count(), 50);
  EXPECT_EQ(latencies.quantile(0.9).count(), 90);
  EXPECT_EQ(latencies.quantile(0.99).count(), 99);
  EXPECT_EQ(latencies.quantile(1).count(), 100);
  EXPECT_EQ(latencies.quantile(0).count(), 1);
  EXPECT_EQ(latencies.count(), 100U);
}

TEST(Latencies, BucketsHoldAllWithoutAGapBetween) {
  cli::Latencies latencies;
  for (const auto time : {2us, 2us, 3us, 40us}) latencies.add(time);
  const auto buckets = latencies.buckets();
  ASSERT_EQ(buckets.size(), 9U);
  EXPECT_EQ(buckets.front().up_to.count(), 2);
  EXPECT_EQ(buckets.front().count, 2U);
  EXPECT_EQ(buckets[1].count, 1U);
  EXPECT_EQ(buckets.back().up_to.count(), 50);
  EXPECT_EQ(buckets.back().count, 1U);
  EXPECT_TRUE(cli::Latencies().buckets().empty());
}

TEST(Latencies, AHistogramFitsTheScreen) {
  cli::Latencies latencies;
  for (int i = 0; i < 1'000; ++i) latencies.add(std::chrono::microseconds(10 + i));
  for (std::size_t width = 1; width < 100; ++width) {
    for (const auto& line : cli::histogram(latencies.buckets(), width)) EXPECT_LE(cli::columns_of(line), width) << line;
  }
  const auto lines = cli::histogram(latencies.buckets(), 60);
  EXPECT_TRUE(std::ranges::any_of(lines, [](const auto& line) { return line.find("████") != line.npos; }));
}

class ToolBench : public ::testing::Test {
 protected:
  RedisServer server_;
  RawClient raw_{server_.unix_socket()};
};

void check(const Json& json) {
  for (const auto* what : {"ping", "cycle", "hand_over"}) {
    const Json& figures = json.at(what);
    EXPECT_GT(figures.at("count"), 0) << what;
    EXPECT_GT(figures.at("p50_us"), 0) << what;
    EXPECT_GE(figures.at("p90_us"), figures.at("p50_us")) << what;
    EXPECT_GE(figures.at("max_us"), figures.at("p99_us")) << what;
  }
  EXPECT_GT(json.at("cycle").at("per_second"), 0);
  std::size_t sum = 0;
  for (const Json& bucket : json.at("cycle").at("histogram")) sum += bucket.at("count").get<std::size_t>();
  EXPECT_EQ(json.at("cycle").at("count"), sum);
}

TEST_F(ToolBench, MeasuresAndLeavesNothingBehind) {
  const auto result = run_tool({"bench", "--for", "2s", "--json"}, {.url = server_.url_unix()});
  ASSERT_EQ(result.exit, 0) << result.err;
  check(Json::parse(result.out));
  EXPECT_EQ(raw_.keys(), std::vector<std::string>{});
  const auto text = run_tool({"bench", "--for", "2s"}, {.url = server_.url_unix()});
  EXPECT_NE(text.out.find("█"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("cycles/s"), std::string::npos) << text.out;
}

TEST_F(ToolBench, WorksInMemory) {
  const auto result = run_tool({"bench", "--for", "2s", "--json"}, {.url = "memory:"});
  ASSERT_EQ(result.exit, 0) << result.err;
  check(Json::parse(result.out));
}

TEST_F(ToolBench, AnInterruptEndsItInOrder) {
  Tool tool({"bench", "--for", "10s"}, {.url = server_.url_unix()});
  ASSERT_TRUE(becomes([&] { return !raw_.keys("redlease-bench:*").empty(); }, Millis(30'000)));
  tool.signal(SIGINT);
  EXPECT_EQ(tool.wait(Millis(10'000)).exit, 130);
  EXPECT_EQ(raw_.keys(), std::vector<std::string>{});
}

TEST_F(ToolBench, WhatCannotWorkIsTold) {
  EXPECT_EQ(run_tool({"bench", "--for", "1ms"}, {.url = server_.url_unix()}).exit, 64);
  EXPECT_EQ(run_tool({"bench", "--for", "1h"}, {.url = server_.url_unix()}).exit, 64);
  EXPECT_EQ(run_tool({"bench"}, {.url = "unix:///nowhere/redis.sock"}).exit, 69);
  raw_.command({"ACL", "SETUSER", "weak", "on", ">word", "~other:*", "&*", "+@all"});
  const std::string url = "unix://weak:word@" + server_.socket_path();
  EXPECT_EQ(run_tool({"bench", "--for", "2s"}, {.url = url}).exit, 77);
  EXPECT_EQ(run_tool({"bench", "--for", "2s", "--prefix", "other:"}, {.url = url}).exit, 0);
}

}  // namespace
}  // namespace redlease
