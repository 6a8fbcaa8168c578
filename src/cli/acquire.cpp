// acquire, renew and release: for scripts that hold a lease from one command to another.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/commands.hpp"
#include "cli/duration_option.hpp"
#include "cli/exit_code.hpp"
#include "cli/lease_options.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/stop_on_signal.hpp"

namespace redlease::cli {
namespace {

Json about(const Lease& lease) {
  const auto fence = lease.fencing_token();
  Json out{{"key", lease.key().str()}, {"token", lease.token().str()}};
  out["fence"] = fence ? Json(static_cast<std::uint64_t>(*fence)) : Json();
  out["valid_ms"] = lease.remaining().count();
  return out;
}

int acquire(const Context& context, const std::string& name, const LeaseOptions& options, int busy_exit) {
  context.insist_on_a_server();
  const StopOnSignal signals;
  Client client = context.client();
  const LeaseKey key(name);
  auto result = [&] {
    const Progress progress(context, client, key);
    return client.acquire(key, options, signals.token());
  }();
  if (auto lease = lease_or_explain(context, std::move(result), key, signals.signal(), busy_exit)) {
    // Not abandoned before it was printed, and looked at behind that, which may have taken long: a token that nobody
    // saw is given back.
    if (context.json()) {
      Context::print_json(about(*lease));
    } else {
      print(lease->token().str() + "\n");
    }
    if (!lease->held()) {
      throw Failure(Exit::lost, "lost",
                    fmt::format("{} was lost before its token was told: this process stood still, or "
                                "whoever reads its output",
                                printable(key.str())));
    }
    lease->abandon();
    return number(Exit::ok);
  }
  return busy_exit;
}

struct Held {
  std::string key, token;
  Millis ttl{LeaseOptions{}.ttl};
};

Lease adopted(Client& client, const Held& held) {
  if (held.token.empty()) {
    throw Failure(Exit::usage, "usage", "no token is given: say --token or set REDLEASE_TOKEN to what acquire printed");
  }
  return client.adopt(held.key, OwnerToken(held.token), {.ttl = held.ttl});
}

int renew(const Context& context, const Held& held) {
  context.insist_on_a_server();
  Client client = context.client();
  Lease lease = adopted(client, held);
  const RenewOutcome outcome = lease.renew();
  const Json renewed = about(lease);
  const Error error = lease.last_error();
  const auto cause = lease.loss();
  lease.abandon();  // the server keeps it for whoever has the token, whatever becomes of our output
  switch (outcome) {
    case RenewOutcome::renewed:
      if (context.json()) Context::print_json(renewed);
      return number(Exit::ok);
    case RenewOutcome::lost: throw not_held(held.key, cause);
    case RenewOutcome::unknown: throw Failure(Exit::unknown, "unknown_outcome", error.detail);
    case RenewOutcome::unavailable: break;
  }
  throw failure(error);
}

int release(const Context& context, const Held& held) {
  context.insist_on_a_server();
  Client client = context.client();
  Lease lease = adopted(client, held);
  give_back(lease);
  if (context.json()) Context::print_json({{"key", held.key}, {"released", true}});
  return number(Exit::ok);
}

void add_held(CLI::App& command, Held& held) {
  command.add_option("key", held.key, "The name of the lease")->required()->type_name("KEY");
  command.add_option("--token", held.token, "What acquire printed")->envname("REDLEASE_TOKEN")->type_name("TOKEN");
}

}  // namespace

void add_acquire(CLI::App& app, Context& context) {
  struct Given {
    std::string key;
    LeaseOptions options;
    int busy_exit{number(Exit::busy)};
  };
  auto given = std::make_shared<Given>();
  CLI::App* command = app.add_subcommand("acquire", "Take a lease and print its token, for renew and release");
  command->add_option("key", given->key, "The name of the lease")->required()->type_name("KEY");
  add_lease_options(*command, given->options);
  add_busy_exit(*command, given->busy_exit);
  command->callback([&context, given] {
    context.action = [&context, given] { return acquire(context, given->key, given->options, given->busy_exit); };
  });
}

void add_renew(CLI::App& app, Context& context) {
  auto held = std::make_shared<Held>();
  CLI::App* command = app.add_subcommand("renew", "Give a lease another full ttl from now");
  add_held(*command, *held);
  add_duration(*command, "--ttl", held->ttl, "How long the server keeps it without another renewal; default 30s");
  command->callback([&context, held] { context.action = [&context, held] { return renew(context, *held); }; });
}

void add_release(CLI::App& app, Context& context) {
  auto held = std::make_shared<Held>();
  CLI::App* command = app.add_subcommand("release", "Give a lease back");
  add_held(*command, *held);
  command->callback([&context, held] { context.action = [&context, held] { return release(context, *held); }; });
}

}  // namespace redlease::cli
