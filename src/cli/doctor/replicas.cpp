// What a failover forgets, and whether servers that are to be independent are.
#include <fmt/format.h>

#include <array>

#include "cli/doctor/exam.hpp"
#include "cli/doctor/finding.hpp"
#include "redlease/wire/endpoint.hpp"

namespace redlease::cli::doctor {
namespace {

Verdict replicas(Exam& exam) {
  const auto role = exam.info("role");
  const auto count = exam.number("connected_slaves");
  if (!role || !count) return exam.unknown();
  if (*role != "master") return unknown("not a primary");
  const auto wanted = to_integer(exam.config("min-replicas-to-write"));
  const auto good = exam.number("min_slaves_good_slaves");  // told only where some are wanted
  if (wanted && good && *good < *wanted) {
    return fail(fmt::format("{} of the {} replicas that min-replicas-to-write wants", *good, *wanted),
                "the server refuses all writes (NOREPLICAS): nothing is granted, renewed or given back",
                fmt::format("bring the replicas back, or `CONFIG SET min-replicas-to-write {}`", *good));
  }
  if (*count == 0) return ok("no replicas, so no failover");
  if (!wanted && !good) {
    exam.config("min-replicas-to-write");
    return exam.unknown(fmt::format("{} replicas; ", *count));
  }
  if (good || *wanted > 0) {
    Verdict verdict = ok(fmt::format("{} replicas, and writes need some of them (min-replicas-to-write)", *count));
    verdict.risk = "replication is asynchronous: a failover can still forget the newest leases";
    return verdict;
  }
  return warn(fmt::format("{} replicas, and min-replicas-to-write is 0", *count),
              "a primary that is cut off goes on granting leases which the promoted replica has never heard of: two "
              "holders",
              "`CONFIG SET min-replicas-to-write 1` and `CONFIG SET min-replicas-max-lag 10`, and in its configuration "
              "file (CONFIG REWRITE); this "
              "makes it rarer, not impossible");
}

struct Identity {
  std::string server, run_id, history;
  bool replica;
};

std::optional<Identity> identity(const std::string& server, const std::map<std::string, std::string>& info) {
  const auto run_id = info.find("run_id"), history = info.find("master_replid"), role = info.find("role");
  if (run_id == info.end() || history == info.end() || role == info.end()) return std::nullopt;
  return Identity{server, run_id->second, history->second, role->second != "master"};
}

std::optional<Identity> ask_identity(const Exam& exam, const std::string& url, std::string& trouble) {
  Endpoint endpoint = parse_endpoint(url);
  endpoint.client_name = exam.endpoint().client_name;
  endpoint.tls = exam.endpoint().tls;
  if (endpoint.user.empty() && !endpoint.password) {
    endpoint.user = exam.endpoint().user;
    endpoint.password = exam.endpoint().password;
  }
  const Limits limits{deadline_in(Millis(2'000)), exam.stop()};
  auto connection = Connection::open(endpoint, limits);
  if (!connection.has_value()) return trouble = connection.error().detail, std::nullopt;
  std::string& frame = connection.value()->frame();
  append_command(frame, {"INFO"});
  if (connection.value()->call(frame, limits) != Delivery::answered) {
    return trouble = connection.value()->error().detail, std::nullopt;
  }
  const Reply& reply = connection.value()->reply();
  auto found = identity(endpoint.display, reply.kind == Reply::Kind::text ? info_fields(reply.text)
                                                                          : std::map<std::string, std::string>{});
  if (!found) trouble = endpoint.display + " does not tell its run id";
  return found;
}

Verdict independence(Exam& exam) {
  std::vector<Identity> nodes;
  std::string trouble;
  if (auto first = identity(exam.endpoint().display, exam.info())) {
    nodes.push_back(*std::move(first));
  } else {
    trouble = "the first server does not tell its run id";
  }
  for (const std::string& url : exam.terms().nodes) {
    if (auto node = ask_identity(exam, url, trouble)) nodes.push_back(*std::move(node));
  }
  constexpr std::string_view one_vote =
      "votes that are not independent are lost together: a majority may be no more than one server";
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].replica) {
      return fail(nodes[i].server + " is a replica", std::string(one_vote), "name primaries alone");
    }
    for (std::size_t k = 0; k < i; ++k) {
      if (nodes[i].run_id == nodes[k].run_id) {
        return fail(fmt::format("{} and {} are one server", nodes[k].server, nodes[i].server), std::string(one_vote),
                    "name each server once");
      }
      if (nodes[i].history == nodes[k].history) {
        return fail(fmt::format("{} and {} replicate each other", nodes[k].server, nodes[i].server),
                    std::string(one_vote), "use primaries that know nothing of each other");
      }
    }
  }
  if (!trouble.empty()) return unknown(trouble);
  return ok(
      fmt::format("{} servers that do not replicate each other; whether they share a machine, a disk or a power "
                  "supply was not asked",
                  nodes.size()));
}

}  // namespace

std::span<const Check> replica_checks() {
  static constexpr std::array<Check, 1> checks{{{"replication.replicas", replicas}}};
  return checks;
}

std::span<const Check> node_checks() {
  static constexpr std::array<Check, 1> checks{{{"quorum.independence", independence}}};
  return checks;
}

}  // namespace redlease::cli::doctor
