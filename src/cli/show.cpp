// show and break: one key, seen and dealt with from outside.
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/duration.hpp"
#include "cli/exit_code.hpp"
#include "cli/lease_json.hpp"
#include "cli/output.hpp"

namespace redlease::cli {
namespace {

std::string described(const LeaseKey& key, const LeaseInfo& info, const Screen& screen) {
  std::string out;
  const auto row = [&](std::string_view name, std::string_view value) {
    out += fmt::format("{:<10}{}\n", name, value);
  };
  row("key", printable(key.str()));
  row("state", info.held ? screen.tinted(Tint::warn, "held") : screen.tinted(Tint::good, "free"));
  if (info.held) {
    row("holder", info.holder.empty() ? "not a holder of this library's" : printable(info.holder));
    if (!info.label.empty()) row("label", printable(info.label));
    if (info.held_for) row("held for", show(*info.held_for));
    row("expires", info.remaining ? fmt::format("in {} unless renewed", show(*info.remaining))
                                  : screen.tinted(Tint::bad, "never: nothing but break or a DEL ends it"));
  }
  row("fence",
      info.fence == FencingToken{} ? "none remembered" : fmt::format("{}", static_cast<std::uint64_t>(info.fence)));
  row("waiters", fmt::format("{}", info.waiters));
  for (std::size_t i = 0; i < info.queue.size(); ++i) {
    const bool timed = i < info.queued_for.size();
    row("", fmt::format("{}. {}{}", i + 1, printable(info.queue[i]), timed ? " for " + show(info.queued_for[i]) : ""));
  }
  if (info.waiters > info.queue.size()) row("", "…");
  return out;
}

int show_one(const Context& context, const LeaseKey& key) {
  context.insist_on_a_server();
  Client client = context.client();
  const auto info = client.inspect(key);
  if (!info.has_value()) throw failure(info.error());
  if (context.json()) {
    Context::print_json(lease_json(key.str(), info.value()));
  } else {
    print(described(key, info.value(), Screen(STDOUT_FILENO)));
  }
  return number(Exit::ok);
}

int break_one(const Context& context, const LeaseKey& key, bool yes) {
  context.insist_on_a_server();
  Client client = context.client();
  if (!yes) {
    throw Failure(Exit::usage, "usage",
                  fmt::format("break takes {} from whoever holds it, who may go on working until the next renewal: "
                              "look at it with 'redlease show', then say --yes",
                              printable(key.str())));
  }
  const auto broken = client.break_lease(key);
  if (!broken.has_value()) throw failure(broken.error());
  if (context.json()) {
    Context::print_json({{"key", key.str()}, {"broken", broken.value()}});
  } else {
    context.remark(broken.value() ? "broken: a holder that renews it learns of it then"
                                  : printable(key.str()) + " was free already");
  }
  return number(Exit::ok);
}

}  // namespace

void add_show(CLI::App& app, Context& context) {
  auto key = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("show", "Tell who holds a lease, for how long still, and who waits");
  command->add_option("key", *key, "The name of the lease")->required()->type_name("KEY");
  command->callback([&context, key] { context.action = [&context, key] { return show_one(context, *key); }; });
}

void add_break(CLI::App& app, Context& context) {
  struct Given {
    std::string key;
    bool yes{};
  };
  auto given = std::make_shared<Given>();
  CLI::App* command = app.add_subcommand("break", "Take a lease from whoever holds it");
  command->add_option("key", given->key, "The name of the lease")->required()->type_name("KEY");
  command->add_flag("--yes", given->yes, "I know that its holder may still be working");
  command->callback(
      [&context, given] { context.action = [&context, given] { return break_one(context, given->key, given->yes); }; });
}

}  // namespace redlease::cli
