// doctor: audits a deployment for lease use. It changes nothing; what it writes is a scratch key that it removes.
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/doctor/exam.hpp"
#include "cli/doctor/report.hpp"
#include "cli/duration_option.hpp"
#include "cli/exit_code.hpp"
#include "cli/stop_on_signal.hpp"
#include "redlease/options.hpp"

namespace redlease::cli {
namespace doctor {
namespace {

Report examined(Exam& exam, const StopOnSignal& signals) {
  Report report;
  const auto look = [&](std::span<const Check> checks) {
    for (const Check& check : checks) {
      if (signals.signal() == 0) report.findings.push_back({check.id, check.look(exam)});
    }
  };
  look(topology_checks());
  look(memory_checks());
  look(durability_checks());
  look(replica_checks());
  if (!exam.terms().nodes.empty()) look(node_checks());
  look(permission_checks());
  look(lease_checks());
  look(key_checks());
  look(clock_checks());
  if (!exam.terms().server_only) look(host_checks());
  return report;
}

int run(const Context& context, const Terms& terms) {
  LeaseOptions lease{.ttl = terms.ttl};
  if (terms.op_timeout > Millis(0)) lease.op_timeout = terms.op_timeout;
  if (const auto wrong = flaw(lease)) throw Failure(Exit::usage, "usage", std::string(*wrong));
  for (const std::string& node : terms.nodes) (void)parse_endpoint(node);
  const StopOnSignal signals;
  Exam exam(context, terms, signals.token());
  const Report report = examined(exam, signals);
  if (signals.signal() != 0) throw interrupted(signals.signal(), "while examining " + exam.endpoint().display);
  if (context.json()) {
    Context::print_json(to_json(report, exam));
  } else {
    tell(report, exam);
  }
  return report.exit();
}

}  // namespace
}  // namespace doctor

void add_doctor(CLI::App& app, Context& context) {
  auto terms = std::make_shared<doctor::Terms>();
  CLI::App* command =
      app.add_subcommand("doctor", "Tell what can go wrong with leases on this server, and what mends it");
  add_duration(*command, "--ttl", terms->ttl, "The ttl of the leases that are meant; default 30s");
  add_duration(*command, "--op-timeout", terms->op_timeout, "Their op_timeout; default a third of the ttl, at most 1s");
  command->add_option("--scratch-key", terms->scratch_key, "A free name to try leases on; default a random one")
      ->type_name("KEY");
  command->add_option("--node", terms->nodes, "Another server, which is to be independent of this one; may be repeated")
      ->type_name("URL");
  command->add_flag("--server-only", terms->server_only, "Leave out what concerns this host");
  command->callback([&context, terms] { context.action = [&context, terms] { return doctor::run(context, *terms); }; });
}

}  // namespace redlease::cli
