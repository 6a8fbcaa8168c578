#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/inherited.hpp"
#include "cli/output.hpp"
#include "cli/usage_error.hpp"
#include "redlease/version.hpp"

namespace redlease::cli {
namespace {

int failed(const Context& context, const std::string& code, const std::string& message, int exit) {
  print_error(message);
  try {
    context.print_json_error(code, message);
  } catch (const Failure&) {
    // Nobody reads it; stderr has it.
  }
  return exit;
}

// Behind "--" of run stands a command: its words are taken from the command line before CLI11 sees them, which would
// make two words of "[a,b]".
std::vector<std::string> take_command(int& argc, char** argv) {
  using namespace std::string_view_literals;
  char** const end = argv + argc;
  char** const mark = std::find(argv + 1, end, "--"sv);
  if (mark == end || std::find(argv + 1, mark, "run"sv) == mark) return {};
  argc = static_cast<int>(mark - argv);
  return {mark + 1, end};
}

int run_tool(int argc, char** argv, const Inherited& inherited) {
  CLI::App app("Leases on Redis and Valkey: one at a time, across processes and machines.", "redlease");
  app.set_version_flag("--version", fmt::format("redlease {}.{}.{}", REDLEASE_VERSION_MAJOR, REDLEASE_VERSION_MINOR,
                                                REDLEASE_VERSION_PATCH));
  app.require_subcommand(1);
  app.fallthrough();
  app.footer("Exit codes and the JSON of each command: man redlease.");
  Context context(app, inherited);
  context.command = take_command(argc, argv);
  add_run(app, context);
  add_acquire(app, context);
  add_renew(app, context);
  add_release(app, context);
  add_show(app, context);
  add_ls(app, context);
  add_wait(app, context);
  add_break(app, context);
  add_watch(app, context);
  add_trace(app, context);
  add_bench(app, context);
  add_doctor(app, context);
  for (CLI::App* command : app.get_subcommands({})) {
    command->footer("Options that every command knows: redlease --help.");
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wanted) {  // --help, --version
    std::ostringstream text;
    app.exit(wanted, text, text);
    context.action = [text = text.str()] { return print(text), number(Exit::ok); };
  } catch (const CLI::ParseError& error) {
    return failed(context, "usage", usage_error(app, error), number(Exit::usage));
  }
  if (!context.command.empty() && !app.got_subcommand("run")) {
    return failed(context, "usage", "'--' stands before the command of 'redlease run' alone", number(Exit::usage));
  }
  try {
    return context.action();
  } catch (const Failure& failure) {
    return failed(context, failure.code, failure.what(), failure.exit);
  } catch (const std::invalid_argument& refused) {
    return failed(context, "usage", std::string(without_speaker(refused.what())), number(Exit::usage));
  } catch (const LeaseLost& lost) {  // in the instant between the grant and the first look at it
    return failed(context, code_name(lost.code()), lost.what(), number(Exit::lost));
  }
}

}  // namespace
}  // namespace redlease::cli

int main(int argc, char** argv) {
  const redlease::cli::Inherited inherited;
  try {
    return redlease::cli::run_tool(argc, argv, inherited);
  } catch (const std::exception& error) {
    redlease::cli::print_error(error.what());
    return redlease::cli::number(redlease::cli::Exit::unavailable);
  }
}
