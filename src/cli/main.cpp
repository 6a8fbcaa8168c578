#include <fmt/format.h>

#include <csignal>
#include <exception>
#include <stdexcept>

#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "redlease/version.hpp"

namespace redlease::cli {
namespace {

int failed(const Context& context, const std::string& code, const std::string& message, int exit) {
  fmt::print(stderr, "redlease: {}\n", message);
  try {
    if (context.json()) Context::print_json({{"error", {{"code", code}, {"message", message}}}});
  } catch (const Failure&) {
    // Nobody reads it; stderr has it.
  }
  return exit;
}

int run_tool(int argc, char** argv) {
  CLI::App app("Leases on Redis and Valkey: one at a time, across processes and machines.", "redlease");
  app.set_version_flag("--version", fmt::format("redlease {}.{}.{}", REDLEASE_VERSION_MAJOR, REDLEASE_VERSION_MINOR,
                                                REDLEASE_VERSION_PATCH));
  app.require_subcommand(1);
  app.fallthrough();
  app.footer("Exit codes and the JSON of each command: man redlease.");
  Context context(app);
  add_acquire(app, context);
  add_renew(app, context);
  add_release(app, context);
  add_show(app, context);
  add_wait(app, context);
  add_break(app, context);
  add_doctor(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wanted) {  // --help, --version
    return app.exit(wanted);
  } catch (const CLI::ParseError& error) {
    return failed(context, "usage",
                  fmt::format("{}\nTry 'redlease --help' or 'redlease COMMAND --help'.", error.what()),
                  number(Exit::usage));
  }
  try {
    return context.action();
  } catch (const Failure& failure) {
    return failed(context, failure.code, failure.what(), failure.exit);
  } catch (const std::invalid_argument& refused) {
    return failed(context, "usage", refused.what(), number(Exit::usage));
  }
}

}  // namespace
}  // namespace redlease::cli

int main(int argc, char** argv) {
  // A reader that has gone is an error of write(), told as such: a killed tool could not give its lease back.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return redlease::cli::run_tool(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "redlease: {}\n", error.what());
    return redlease::cli::number(redlease::cli::Exit::unavailable);
  }
}
