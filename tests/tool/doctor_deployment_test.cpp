// Deployments that were set up badly: each is found, and mended by what the doctor says.
#include <filesystem>
#include <functional>

#include "support/fault_proxy.hpp"
#include "tool/doctor.hpp"

namespace redlease {
namespace {

using Prepare = std::function<void(RedisServer&, RawClient&)>;

struct Bad {
  std::string name;
  Words config;     ///< lines of redis.conf
  Prepare prepare;  ///< what has happened to it
  Words options;    ///< of the doctor
  std::string check, status, found;
  Prepare half_mended{};  ///< what is told in words alone
  int told{1};            ///< how many commands are suggested
};

Prepare nothing() {
  return [](RedisServer&, RawClient&) {};
}

// Until the field of INFO is no longer 0, or the server takes no more.
Prepare filled(const std::string& field) {
  return [field](RedisServer&, RawClient& raw) {
    const std::string value(1'000, 'v');
    const std::string before = raw.info(field);
    for (int i = 0; i < 20'000; ++i) {
      if (raw.command({"SET", "filler:" + std::to_string(i), value}).kind == RawReply::Kind::error) return;
      if (field == "evicted_keys" && i % 100 == 0 && raw.info(field) != before) return;
    }
    FAIL() << "it would not fill";
  };
}

Prepare failed_snapshot() {
  return [](RedisServer& server, RawClient& raw) {
    const std::string dir = server.dir() + "/gone";
    std::filesystem::create_directory(dir);
    raw.config_set("dir", dir);
    std::filesystem::remove(dir);
    raw.command({"BGSAVE"});
    ASSERT_TRUE(becomes([&] { return raw.info("rdb_last_bgsave_status").find("err") != std::string::npos; }));
  };
}

Prepare command(Words words) {
  return [words](RedisServer&, RawClient& raw) { ASSERT_NE(raw.command(words).kind, RawReply::Kind::error); };
}

const std::vector<Bad>& bad_deployments() {
  static const std::vector<Bad> rows{
      {"VolatileLru",
       {"maxmemory 100mb", "maxmemory-policy volatile-lru"},
       nothing(),
       {},
       "memory.policy",
       "fail",
       "volatile-lru with a maxmemory of 100.0 MiB"},
      {"VolatileTtl",
       {"maxmemory 100mb", "maxmemory-policy volatile-ttl"},
       nothing(),
       {},
       "memory.policy",
       "fail",
       "volatile-ttl"},
      {"AllkeysLru",
       {"maxmemory 100mb", "maxmemory-policy allkeys-lru"},
       nothing(),
       {},
       "memory.policy",
       "fail",
       "allkeys-lru"},
      {"EvictionsThatHappened",
       {"maxmemory 3mb", "maxmemory-policy allkeys-random"},
       filled("evicted_keys"),
       {},
       "memory.evictions",
       "warn",
       "keys since the server started",
       {},
       2},
      {"AlmostFull", {"maxmemory 3mb"}, filled("used_memory"), {}, "memory.room", "warn", "of 3.0 MiB used"},
      {"NoPersistence", {}, nothing(), {}, "durability.persistence", "fail", "none"},
      {"SnapshotsAlone", {"save 3600 1000"}, nothing(), {}, "durability.persistence", "warn", "save 3600 1000"},
      {"NoFsync",
       {"appendonly yes", "appendfsync no"},
       nothing(),
       {},
       "durability.persistence",
       "warn",
       "appendfsync no"},
      {"SnapshotThatFails",
       {"enable-protected-configs yes", "save 3600 100000"},
       failed_snapshot(),
       {},
       "durability.disk",
       "fail",
       "the last snapshot failed",
       [](RedisServer& server, RawClient& raw) { raw.config_set("dir", server.dir()); }},
      {"SnapshotThatFailsAndWritesGoOn",
       {"enable-protected-configs yes", "save 3600 100000", "stop-writes-on-bgsave-error no"},
       failed_snapshot(),
       {},
       "durability.disk",
       "warn",
       "writes go on",
       [](RedisServer& server, RawClient& raw) { raw.config_set("dir", server.dir()); }},
      {"TooFewReplicas", {"min-replicas-to-write 1"}, nothing(), {}, "replication.replicas", "fail", "0 of the 1"},
      {"JustRestarted",
       {},
       [](RedisServer& server, RawClient&) { server.restart(); },
       {"--ttl", "8s"},
       "durability.restart",
       "warn",
       "less than the ttl",
       {},
       0},
      {"AKeyThatNeverExpires",
       {},
       command({"SET", "billing:old", "someone"}),
       {"--prefix", "billing:"},
       "keys.expiry",
       "warn",
       "1: billing:old"},
      {"AKeyThatNeverExpiresAndIsAShellsLine",
       {},
       command({"SET", "bill ing:x'; touch pwned; '", "someone"}),
       {"--prefix", "bill ing:"},
       "keys.expiry",
       "warn",
       "1: bill ing:x"},
      {"ALeaseThatNeverExpires",
       {},
       [](RedisServer& server, RawClient& raw) {
         ASSERT_EQ(run_tool({"acquire", "old"}, {.url = server.url_unix()}).exit, 0);
         raw.command({"SET", "data", "of somebody's"});
         raw.command({"PERSIST", "old"});
       },
       {},
       "keys.expiry",
       "warn",
       "1: old"},
      {"AFenceAheadOfTheClock",
       {},
       [](RedisServer&, RawClient& raw) {
         const auto ahead = (std::stoll(raw.command({"TIME"}).elements.at(0).text) + 12) << 20;
         raw.command({"SET", "k:{k}lease:meta", std::to_string(ahead) + " token 1 host:1 label", "PX", "100000"});
       },
       {},
       "keys.fences",
       "warn",
       "1, by up to",
       {},
       0},
  };
  return rows;
}

class DoctorDeployment : public ::testing::TestWithParam<Bad> {};

TEST_P(DoctorDeployment, IsFoundNamedAndMendedAsTold) {
  const Bad& bad = GetParam();
  RedisServer server(bad.config);
  {
    RawClient raw(server.unix_socket());
    bad.prepare(server, raw);
  }
  RawClient raw(server.unix_socket());
  const std::string url = server.url_unix();
  const Examined before = examine(url, bad.options);
  expect_found(before, bad.check, bad.status, bad.found);
  if (HasFatalFailure()) return;
  if (bad.half_mended) bad.half_mended(server, raw);
  EXPECT_EQ(do_as_told(before, bad.check, raw, url), bad.told);
  expect_mended(url, bad.check, bad.options);
}

INSTANTIATE_TEST_SUITE_P(Rows, DoctorDeployment, ::testing::ValuesIn(bad_deployments()),
                         [](const auto& row) { return row.param.name; });

void PrintTo(const Bad& bad, std::ostream* out) { *out << bad.name; }

TEST(DoctorDeployments, OneThatIsLoadingIsFoundAndIsWellWhenThatIsOver) {
  RedisServer server({"key-load-delay 4000", "loading-process-events-interval-bytes 1024", "rdbcompression no"});
  {
    RawClient raw(server.unix_socket());
    for (int i = 0; i < 2'000; ++i) raw.set("filler:" + std::to_string(i), std::string(100, 'v'));
  }
  server.restart(true, Await::answer);
  const Examined loading = examine(server.url_unix());
  expect_found(loading, "topology.loading", "fail", "loading its data");
  expect_mended(server.url_unix(), "topology.loading");
}

TEST(DoctorDeployments, ASlowWayIsFoundAndALongerTtlMendsIt) {
  RedisServer server;
  FaultProxy proxy(server.tcp());
  Faults slow;
  slow.up.delay = slow.down.delay = Millis(50);
  proxy.on_new(slow);
  const Examined examined = examine(proxy.url(), {"--ttl", "300ms"});
  // Two round trips are as much as the op_timeout allows, so a loaded machine may go past it.
  const std::string status = examined.status("lease.latency");
  EXPECT_TRUE(status == "warn" || status == "fail") << examined.json;
  expect_found(examined, "lease.latency", status, "op_timeout 100 ms");
  expect_found(examined, "lease.latency", status, "a ttl of at least");
  expect_mended(proxy.url(), "lease.latency", {"--ttl", "1m"});
}

}  // namespace
}  // namespace redlease
