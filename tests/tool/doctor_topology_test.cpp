// What the URL leads to: real replicas, nodes and sentinels, and in the end products that are only played.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "support/scripted_server.hpp"
#include "tool/doctor.hpp"

namespace redlease {
namespace {

Words replica_of(const RedisServer& primary) { return {"replicaof 127.0.0.1 " + std::to_string(primary.port())}; }

bool linked(const RedisServer& replica) {
  return becomes(
      [&] { return RawClient(replica.unix_socket()).info("master_link_status").find("up") != std::string::npos; },
      Millis(60'000));
}

class DoctorReplication : public ::testing::Test {
 protected:
  RedisServer primary_;
  RedisServer replica_{replica_of(primary_)};
};

TEST_F(DoctorReplication, AReplicaAtTheUrlIsAFailureThatNamesItsPrimary) {
  ASSERT_TRUE(linked(replica_));
  RawClient raw(replica_.unix_socket());
  const Examined before = examine(replica_.url_unix());
  expect_found(before, "topology.role", "fail", "127.0.0.1:" + std::to_string(primary_.port()));
  expect_found(before, "lease.cycle", "fail", "READONLY");
  EXPECT_EQ(examine(primary_.url_unix()).status("topology.role"), "ok");
  EXPECT_EQ(do_as_told(before, "topology.role", raw, replica_.url_unix()), 1);
  expect_mended(replica_.url_unix(), "topology.role");
}

TEST_F(DoctorReplication, APrimaryThatNeedsNoneOfItsReplicasIsWarnedOf) {
  ASSERT_TRUE(linked(replica_));
  RawClient raw(primary_.unix_socket());
  const Examined before = examine(primary_.url_unix());
  expect_found(before, "replication.replicas", "warn", "min-replicas-to-write is 0");
  EXPECT_EQ(do_as_told(before, "replication.replicas", raw, primary_.url_unix()), 2);
  expect_mended(primary_.url_unix(), "replication.replicas");
}

TEST_F(DoctorReplication, VotesThatAreNotIndependentAreNamed) {
  ASSERT_TRUE(linked(replica_));
  RedisServer other;
  const std::string url = primary_.url_unix();
  expect_found(examine(url, {"--node", primary_.url_tcp()}), "quorum.independence", "fail", "are one server");
  expect_found(examine(url, {"--node", replica_.url_tcp()}), "quorum.independence", "fail", "is a replica");
  expect_found(examine(url, {"--node", "redis://127.0.0.1:1"}), "quorum.independence", "unknown", "127.0.0.1:1");
  expect_found(examine(url, {"--node", other.url_tcp()}), "quorum.independence", "ok", "2 servers");
  EXPECT_EQ(examine(url).finding("quorum.independence"), Json());
}

TEST(DoctorTopology, AClusterNodeAtAPlainUrlIsAFailureAndAPlainServerIsNot) {
  RedisServer node({"cluster-enabled yes"});
  expect_found(examine(node.url_unix()), "topology.mode", "fail", "without cluster-enabled");
  RedisServer plain;
  EXPECT_EQ(examine(plain.url_unix()).status("topology.mode"), "ok");
}

TEST(DoctorTopology, ASentinelIsAFailure) {
  const TempDir dir;
  const std::string wrapper = dir.path() + "/sentinel";
  const char* named = std::getenv("REDLEASE_TEST_SERVER");
  const std::string usual = named != nullptr ? named : "redis-server";
  std::ofstream(wrapper) << "#!/bin/sh\nexec " << usual << " \"$1\" --sentinel\n";
  std::filesystem::permissions(wrapper, std::filesystem::perms::owner_all);
  ::setenv("REDLEASE_TEST_SERVER", wrapper.c_str(), 1);
  RedisServer sentinel;
  ::setenv("REDLEASE_TEST_SERVER", usual.c_str(), 1);
  const Examined examined = examine(sentinel.url_unix());
  expect_found(examined, "topology.mode", "fail", "SENTINEL GET-MASTER-ADDR-BY-NAME");
  EXPECT_NE(examined.status("lease.cycle"), "ok");
}

TEST(DoctorTopology, WhereNoServerIsTheLibrarysErrorIsToldAndNothingElse) {
  RedisServer plain;
  const std::vector<std::pair<std::string, std::string>> refused{
      {"unix:///nowhere/redis.sock", "unix:///nowhere/redis.sock"},
      {"redis://127.0.0.1:1", "127.0.0.1:1"},
      {"rediss://127.0.0.1:" + std::to_string(plain.port()), "TLS"},
  };
  for (const auto& [url, said] : refused) {
    const auto result = run_tool({"doctor", "--json"}, {.url = url});
    EXPECT_EQ(result.exit, 69) << url << result.err;
    EXPECT_NE(result.err.find(said), std::string::npos) << result.err;
    EXPECT_TRUE(Json::parse(result.out).contains("error")) << result.out;
  }
  EXPECT_EQ(run_tool({"doctor"}, {.url = "memory:"}).exit, 64);
  EXPECT_EQ(run_tool({"doctor"}, {.url = "redis://nobody:wrong@127.0.0.1:" + std::to_string(plain.port())}).exit, 77);
}

std::string text(const std::string& value) { return "$" + std::to_string(value.size()) + "\r\n" + value + "\r\n"; }

std::int64_t wall_micros() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

// Knows INFO, TIME and CONFIG GET active-replica, and nothing else.
class Played {
 public:
  explicit Played(std::string info) : info_(std::move(info)) {}
  std::string url() const { return server_.url(); }

  std::atomic<std::int64_t> offset{0};  ///< of its clock, in microseconds
  std::atomic<double> rate{1};          ///< of its clock

 private:
  std::string answer(const ScriptedServer::Command& command) const {
    if (command[0] == "INFO") return text(info_);
    if (command[0] == "TIME") {
      const auto since = static_cast<double>(wall_micros() - begun_);
      const auto now = begun_ + static_cast<std::int64_t>(since * rate) + offset;
      return "*2\r\n" + text(std::to_string(now / 1'000'000)) + text(std::to_string(now % 1'000'000));
    }
    if (command[0] == "CONFIG" && command[2] == "active-replica")
      return "*2\r\n" + text("active-replica") + text("yes");
    return "-ERR no such thing here\r\n";
  }

  const std::string info_;
  const std::int64_t begun_{wall_micros()};
  ScriptedServer server_{[this](const ScriptedServer::Command& command) { return answer(command); }};
};

const std::string well = "redis_mode:standalone\r\nrole:master\r\nmaxmemory:0\r\n";

TEST(DoctorProducts, MultiMasterAndStrangeProductsAreNamed) {
  const std::vector<std::tuple<std::string, std::string, std::string>> products{
      {"redis_version:6.3.4\r\nrole:active-replica\r\n", "fail", "multi-master"},
      {"redis_version:6.3.4\r\nrole:master\r\nexecutable:/usr/bin/keydb-server\r\n", "fail", "active-replica no"},
      {"redis_version:7.2.0\r\nrole:master\r\n# Modules\r\nmodule:name=bf,ver=1\r\nmodule:name=crdt,ver=1\r\n", "fail",
       "active-active"},
      {"redis_version:7.2.0\r\ndragonfly_version:df-v1.21.0\r\nrole:master\r\n", "warn", "dragonfly df-v1.21.0"},
      {"redis_version:5.0.14\r\nrole:master\r\n", "warn", "Redis 5.0.14"},
      {"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\nrole:master\r\n", "ok", "Valkey 8.0.1"},
      {"redis_version:eight\r\n", "unknown", ""},
      {"role:master\r\n", "unknown", "redis_version"},
  };
  for (const auto& [info, status, found] : products) {
    expect_found(examine(Played(info).url()), "topology.product", status, found);
  }
}

TEST(DoctorProducts, AFieldIsBelievedAsFarAsItGoes) {
  const std::vector<std::tuple<std::string, std::string, std::string>> fields{
      {"rdb_last_bgsave_status:ok\r\naof_last_write_status:err\r\n", "durability.disk", "fail"},
      {"rdb_last_bgsave_status:err\r\n", "durability.disk", "warn"},  // writes may be refused: CONFIG does not tell
      {"maxmemory:100\r\nmaxmemory_policy:strange\r\n", "memory.policy", "unknown"},
      {"maxmemory:100\r\n", "memory.policy", "unknown"},
      {"maxmemory:lots\r\nmaxmemory_policy:allkeys-lru\r\n", "memory.policy", "unknown"},
      {"maxmemory:100\r\nmaxmemory_policy:allkeys-lfu\r\n", "memory.policy", "fail"},
      {"aof_enabled:2\r\n", "durability.persistence", "unknown"},
      {"aof_enabled:0\r\n", "durability.persistence", "warn"},  // snapshots or not: CONFIG does not tell
      {"aof_enabled:1\r\n", "durability.persistence", "unknown"},
      {"uptime_in_seconds:-\r\n", "durability.restart", "unknown"},
      {"role:queen\r\n", "topology.role", "unknown"},
      {"loading:0\r\nasync_loading:1\r\n", "topology.loading", "fail"},
      {"role:master\r\nconnected_slaves:2\r\n", "replication.replicas", "unknown"},
      {"role:master\r\nconnected_slaves:2\r\nmin_slaves_good_slaves:1\r\n", "replication.replicas", "ok"},
      {"redis_mode:cluster\r\n", "topology.mode", "fail"},
      {"server_mode:sentinel\r\n", "topology.mode", "fail"},
      {"server_mode:standalone\r\n", "topology.mode", "ok"},
  };
  for (const auto& [info, check, status] : fields) {
    const Examined examined = examine(Played(info).url());
    EXPECT_EQ(examined.status(check), status) << info << examined.finding(check);
  }
}

TEST(DoctorProducts, AClockThatIsOffIsFoundAndIsWellWhenItIsSetRight) {
  Played server(well);
  for (const std::int64_t hours : {-1, 1}) {
    server.offset = hours * 3'600'000'000;
    expect_found(examine(server.url()), "clock.offset", "warn", hours < 0 ? "1 h behind" : "1 h ahead");
  }
  server.offset = 0;
  expect_mended(server.url(), "clock.offset");
}

TEST(DoctorProducts, AClockThatRunsAtAnotherRateIsFoundAndIsWellWhenItDoesNot) {
  Played server(well);
  for (const double rate : {1.055, 0.945}) {
    server.rate = rate;
    expect_found(examine(server.url()), "clock.rate", "fail", rate > 1 ? "+5." : "-5.");
  }
  server.rate = 1;
  expect_mended(server.url(), "clock.rate");
}

TEST(DoctorProducts, AnswersThatAreNoneAreUnknownAndExit3) {
  for (const auto* answer : {":7\r\n", "*1\r\n+x\r\n", "$-1\r\n"}) {
    ScriptedServer server([answer](const ScriptedServer::Command&) { return answer; });
    const Examined examined = examine(server.url());
    EXPECT_EQ(examined.exit, 3) << answer << examined.json;
    for (const Json& check : examined.json.at("checks")) {
      EXPECT_EQ(check.at("status"), "unknown") << answer << check;
    }
  }
}

}  // namespace
}  // namespace redlease
