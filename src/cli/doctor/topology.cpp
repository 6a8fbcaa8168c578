// What kind of server the URL leads to.
#include <fmt/format.h>

#include <array>

#include "cli/doctor/exam.hpp"
#include "cli/doctor/finding.hpp"

namespace redlease::cli::doctor {
namespace {

constexpr std::string_view two_masters =
    "two servers take writes for the same key, so each can grant the same lease to somebody: two holders, always";
constexpr std::string_view one_master = "lease on one Redis or Valkey primary, with replicas if you like";

Verdict product(Exam& exam) {
  if (exam.info("role") == "active-replica") {
    return fail("KeyDB as an active replica (multi-master)", std::string(two_masters), std::string(one_master));
  }
  if (exam.info("module:name=crdt")) {
    return fail("an active-active database (the module crdt is loaded)", std::string(two_masters),
                std::string(one_master));
  }
  if (exam.info("executable").value_or("").find("keydb") != std::string::npos) {
    const auto active = exam.config("active-replica");
    if (!active) return exam.unknown("KeyDB; whether it is an active replica (multi-master): ");
    if (*active == "yes") {
      return fail("KeyDB with active-replica yes (multi-master)", std::string(two_masters),
                  "`CONFIG SET active-replica no`, on every node; better, " + std::string(one_master));
    }
  }
  constexpr std::array<std::string_view, 5> others{"dragonfly_version", "kvrocks_version", "garnet_version",
                                                   "rlec_version", "keydb_version"};
  for (const auto field : others) {
    if (const auto version = exam.info(std::string(field))) {
      return warn(fmt::format("{} {}", field.substr(0, field.find('_')), *version),
                  "redlease is tested on Redis and Valkey alone; scripts, expiry and replication may differ here",
                  "run the tests of redlease against this product, or " + std::string(one_master));
    }
  }
  if (const auto version = exam.info("valkey_version")) return ok("Valkey " + *version);
  const auto version = exam.info("redis_version");
  if (!version) return exam.unknown();
  const auto major = to_integer(version->substr(0, version->find('.')));
  if (!major) return unknown("a redis_version that is none");
  if (*major < 6) {
    return warn("Redis " + *version, "redlease needs the users and commands of Redis 6.0: some of its calls may fail",
                "upgrade to a Redis or Valkey that is still maintained");
  }
  return ok("Redis " + *version);
}

Verdict mode(Exam& exam) {
  auto kind = exam.info("redis_mode");
  if (!kind) kind = exam.info("server_mode");  // its name in Valkey 8.1
  if (kind == "sentinel") {
    return fail("a sentinel, not a server with data", "nothing can be leased here",
                "ask it with SENTINEL GET-MASTER-ADDR-BY-NAME and use the address that it tells");
  }
  const auto cluster = exam.info("cluster_enabled");
  if (kind == "cluster" || cluster == "1") {
    return fail("a cluster node, and the URL is no cluster's",
                "keys in the slots of other nodes are refused (MOVED): such leases are unavailable",
                "use a server without cluster-enabled for leases: this version of redlease does not follow MOVED");
  }
  if (!kind && !cluster) return exam.unknown();
  return ok("one server, neither cluster node nor sentinel");
}

Verdict role(Exam& exam) {
  auto role = exam.info("role");
  if (!role) {
    const std::string why = exam.trouble();
    const auto reply = exam.ask_for(Reply::Kind::array, {"ROLE"});
    if (!reply || reply->elements == 0) return exam.unknown(why + "; ");
    role = reply->items[0].text;
  }
  if (*role == "master" || *role == "active-replica") return ok("takes writes");
  if (*role != "slave") return unknown(fmt::format("the role '{}'", *role));
  const auto host = exam.info("master_host"), port = exam.info("master_port");
  return fail("a replica", "a replica refuses writes, so every lease is unavailable; one that takes them loses them",
              host && port ? fmt::format("use the URL of its primary, {}:{}; if the old primary is gone for good, "
                                         "`REPLICAOF NO ONE`",
                                         *host, *port)
                           : "use the URL of its primary; if that is gone for good, `REPLICAOF NO ONE`");
}

Verdict loading(Exam& exam) {
  const auto loading = exam.number("loading");
  if (!loading) return exam.unknown();
  if (*loading == 0 && exam.number("async_loading").value_or(0) == 0) return ok("its data is there");
  const auto eta = exam.info("loading_eta_seconds");
  return fail(fmt::format("loading its data{}", eta ? ", for another " + *eta + " s" : ""),
              "until that is done nothing is granted, renewed or given back; leases run out meanwhile",
              "wait; and keep leases on a server with little other data, which is soon up again");
}

}  // namespace

std::span<const Check> topology_checks() {
  static constexpr std::array<Check, 4> checks{
      {{"topology.product", product}, {"topology.mode", mode}, {"topology.role", role}, {"topology.loading", loading}}};
  return checks;
}

}  // namespace redlease::cli::doctor
