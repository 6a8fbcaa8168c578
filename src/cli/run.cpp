// run: a command as the holder of a lease.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "cli/command.hpp"
#include "cli/commands.hpp"
#include "cli/duration.hpp"
#include "cli/duration_option.hpp"
#include "cli/events.hpp"
#include "cli/exit_code.hpp"
#include "cli/lease_options.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/stop_on_signal.hpp"
#include "cli/supervisor.hpp"

namespace redlease::cli {
namespace {

using namespace std::chrono_literals;

struct Given {
  std::string key;
  LeaseOptions options;
  std::optional<Millis> grace, max_hold;
  int busy_exit{number(Exit::busy)};
};

Terms terms_of(const Given& given) {
  Terms terms;
  terms.grace = given.grace.value_or(std::min<Millis>(given.options.ttl / 3, 10s));
  terms.stop = std::max(terms.grace, given.options.stop_before);
  if (terms.stop > given.options.ttl / 2) {
    throw Failure(Exit::usage, "usage",
                  fmt::format("the command would be told to stop {} before the end of a ttl of {}: --grace and "
                              "--stop-before may be at most half the --ttl",
                              show(terms.stop), show(given.options.ttl)));
  }
  if (given.max_hold && *given.max_hold <= terms.stop) {
    throw Failure(Exit::usage, "usage",
                  fmt::format("with --max-hold {} the command would be told to stop at once: it must be longer than "
                              "--grace and --stop-before ({})",
                              show(*given.max_hold), show(terms.stop)));
  }
  return terms;
}

// That of this process, and how to find the lease.
std::vector<std::string> environment_of(const Context& context, const LeaseGuard& guard) {
  std::map<std::string, std::string> ours = context.environment();
  ours["REDLEASE_KEY"] = guard.key().str();
  ours["REDLEASE_TOKEN"] = guard.token().str();
  ours["REDLEASE_FENCE"] = fmt::format("{}", static_cast<std::uint64_t>(guard.fencing_token()));
  std::vector<std::string> out;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!ours.contains(std::string(text.substr(0, text.find('='))))) out.emplace_back(text);
  }
  for (const auto& [name, value] : ours) out.push_back(fmt::format("{}={}", name, value));
  return out;
}

int hold(const Context& context, Client& client, Lease lease, const LastRenewal& renewals, const Given& given) {
  Terms terms = terms_of(given);
  if (given.max_hold) terms.cap = deadline_in(*given.max_hold);
  LeaseOptions options = given.options;
  options.stop_before = terms.stop;  // renewed early enough for that
  Events events;
  // Not the stop token: that tells once, and may have told to stop before the lease was lost.
  options.on_lost = [&events](LossCause) { events.wake(); };
  LeaseGuard guard(client, std::move(lease), options);
  Terminal terminal;
  const bool in_foreground = terminal.for_us_alone();
  Command command(context.command, environment_of(context, guard), context.inherited, terminal, in_foreground);
  Supervisor supervisor(context, events, terminal, in_foreground, command, guard, renewals, terms);
  const int status = supervisor.run();
  command.check_that_it_ran();
  const std::string key = printable(guard.key().str());
  const ReleaseOutcome released = guard.release();
  if (supervisor.cut_short()) {
    print_error(fmt::format("the command ended with exit code {}", status));
    return number(Exit::lost);
  }
  if (released == ReleaseOutcome::not_held) {
    print_error(
        fmt::format("{} was lost while the command ran, which was seen only when it had ended (with exit code "
                    "{}): what it did last may have met another holder",
                    key, status));
    return number(Exit::lost);
  }
  if (released != ReleaseOutcome::released) {
    context.remark(fmt::format("{} could not be given back and stays until its ttl has passed: {}", key,
                               guard.last_error().detail));
  }
  return status;
}

int run(const Context& context, const Given& given) {
  (void)terms_of(given);  // judged before anything is sent
  if (context.command.empty()) {
    throw Failure(Exit::usage, "usage", "no command is given: redlease run KEY [options] -- command …");
  }
  const LeaseKey key(given.key);
  const auto renewals = std::make_shared<LastRenewal>();
  StopOnSignal signals;
  ClientOptions base;
  base.observer = renewals;
  Client client = context.client(std::move(base));
  auto result = [&] {
    const Progress progress(context, client, key);
    return client.acquire(key, given.options, signals.token());
  }();
  const int signal = signals.end();
  auto lease = lease_or_explain(context, std::move(result), key, signal, given.busy_exit);
  if (!lease) return given.busy_exit;
  if (signal != 0) throw interrupted(signal, "before the command was started");
  return hold(context, client, std::move(*lease), *renewals, given);
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  auto given = std::make_shared<Given>();
  CLI::App* command = app.add_subcommand("run", "Run a command while holding a lease: run KEY [options] -- command …");
  command->add_option("key", given->key, "The name of the lease")->required()->type_name("KEY");
  add_lease_options(*command, given->options);
  add_duration(*command, "--stop-before", given->options.stop_before,
               "Tell the command to stop (SIGTERM) so long before the lease would be lost");
  add_duration(*command, "--grace", given->grace,
               "How long the command gets between SIGTERM and SIGKILL; default a third of the ttl, at most 10s");
  add_duration(*command, "--max-hold", given->max_hold, "End the command after so long, in the same way");
  add_busy_exit(*command, given->busy_exit);
  command->callback([&context, given] { context.action = [&context, given] { return run(context, *given); }; });
}

}  // namespace redlease::cli
