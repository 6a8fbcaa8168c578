// ls: the leases of a server.
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/glob.hpp"
#include "cli/lease_json.hpp"
#include "cli/lease_scan.hpp"
#include "cli/lease_table.hpp"
#include "cli/output.hpp"
#include "cli/stop_on_signal.hpp"

namespace redlease::cli {
namespace {

// With --all also what is free but remembered or waited for, and what others hold.
bool is_listed(const LeaseInfo& info, bool all) {
  return is_ours(info) || (all && (info.held || info.waiters > 0 || info.fence > FencingToken{}));
}

int list(const Context& context, const std::string& pattern, bool all) {
  const StopOnSignal signals;
  (void)context.endpoint();  // memory: has nothing to list
  Client client = context.client();
  std::map<std::string, LeaseInfo> leases;
  const auto look = [&](const std::vector<std::string>& names) {
    for (Look& one : look_at(client, names, signals.token())) {
      if (one.info && is_listed(*one.info, all)) leases.insert_or_assign(one.key, *std::move(one.info));
    }
  };
  try {
    if (const auto name = glob_literal(pattern)) {
      look({*name});
    } else {
      scan_names(context, pattern, all ? Wanted::all : Wanted::ours, signals.token(), look);
    }
  } catch (const Failure&) {
    if (signals.signal() == 0) throw;
  }
  if (signals.signal() != 0) throw interrupted(signals.signal(), "while looking for leases; not all were found");
  if (context.json()) {
    Json out = Json::array();
    for (const auto& [key, info] : leases) out.push_back(lease_json(key, info));
    Context::print_json(out);
  } else if (leases.empty()) {
    context.remark(fmt::format("nothing is leased at {} that matches {}{}", context.server(),
                               printable(context.prefix() + pattern),
                               all ? "" : " (--all: also free names and keys of others)"));
  } else {
    const Screen screen(STDOUT_FILENO);
    std::string text;
    for (const auto& line :
         lease_lines(leases, screen.terminal ? static_cast<std::size_t>(screen.columns()) : 0, screen)) {
      text += line + "\n";
    }
    print(text);
  }
  return number(Exit::ok);
}

}  // namespace

void add_ls(CLI::App& app, Context& context) {
  struct Given {
    std::string pattern{"*"};
    bool all{};
  };
  auto given = std::make_shared<Given>();
  CLI::App* command = app.add_subcommand("ls", "List the leases that are held");
  command->add_option("pattern", given->pattern, "Which names: *, ?, [a-z]; default all")->type_name("PATTERN");
  command->add_flag("--all", given->all,
                    "Also names that are free but remembered or waited for, and keys of others that expire");
  command->callback(
      [&context, given] { context.action = [&context, given] { return list(context, given->pattern, given->all); }; });
}

}  // namespace redlease::cli
