// wait: until a key is free, without taking it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/duration_option.hpp"
#include "cli/exit_code.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/stop_on_signal.hpp"
#include "nap.hpp"

namespace redlease::cli {
namespace {

using namespace std::chrono_literals;

// What no waiting mends.
bool lasting(const Error& error) {
  const Exit exit = exit_for(error.code);
  return exit == Exit::denied || exit == Exit::not_a_lease;
}

int wait(const Context& context, const LeaseKey& key, Millis limit) {
  context.insist_on_a_server();
  const StopOnSignal signals;
  Client client = context.client();
  const Deadline end = deadline_in(limit);
  std::optional<Progress> progress(std::in_place, context, client, key);
  // Sooner at first, for what is about to end; never more than one question a second after that.
  for (Millis pause = 50ms;; pause = std::min<Millis>(pause * 2, 1'000ms)) {
    const auto info = client.inspect(key);
    if (info.has_value() && !info.value().held) break;
    if (!info.has_value() && lasting(info.error())) throw failure(info.error());
    if (signals.signal() != 0) throw interrupted(signals.signal(), "while waiting for " + printable(key.str()));
    const Deadline now = LeaseClock::now();
    if (now >= end) {
      progress.reset();
      if (!info.has_value()) throw failure(info.error());
      throw Failure(
          Exit::busy, "busy",
          fmt::format("waited in vain for {}: {}", printable(key.str()), holder_line(info.value(), this_process())));
    }
    redlease::nap({std::min(end, deadline_after(now, pause)), signals.token()});
  }
  if (context.json()) Context::print_json({{"key", key.str()}, {"held", false}});
  return number(Exit::ok);
}

}  // namespace

void add_wait(CLI::App& app, Context& context) {
  struct Given {
    std::string key;
    Millis limit{forever};
  };
  auto given = std::make_shared<Given>();
  CLI::App* command = app.add_subcommand("wait", "Wait until a lease is free, without taking it");
  command->add_option("key", given->key, "The name of the lease")->required()->type_name("KEY");
  add_duration(*command, "--wait", given->limit, "How long at most; default forever", "forever");
  command->callback(
      [&context, given] { context.action = [&context, given] { return wait(context, given->key, given->limit); }; });
}

}  // namespace redlease::cli
