#include "cli/lease_options.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <utility>

#include "cli/duration.hpp"
#include "cli/duration_option.hpp"
#include "cli/output.hpp"

namespace redlease::cli {

void add_lease_options(CLI::App& app, LeaseOptions& options) {
  add_duration(app, "--ttl", options.ttl, "How long the server keeps the lease without a renewal; default 30s");
  add_duration(app, "--wait", options.wait, "How long to wait while another holds it; default 0", "forever");
  add_duration(app, "--op-timeout", options.op_timeout,
               "The limit of one call to the server; default a third of the ttl, at most 1s");
  app.add_option("--label", options.label, "Shown to whoever looks at the lease; up to 256 bytes")->type_name("TEXT");
  app.add_option_function<std::uint64_t>(
         "--fence-floor", [&options](std::uint64_t n) { options.fence_floor = FencingToken{n}; },
         "The fence of this lease will be higher than this")
      ->type_name("NUMBER");
}

void add_busy_exit(CLI::App& app, int& into) {
  app.add_option("--busy-exit", into, "The exit code if another holds it; default 75, 0 for cron")
      ->check(CLI::Range(0, 255))
      ->type_name("CODE");
}

std::optional<Lease> lease_or_explain(const Context& context, AcquireResult result, const LeaseKey& key, int signal,
                                      int busy_exit) {
  if (signal != 0 && result.outcome() != AcquireOutcome::acquired) {
    throw interrupted(signal, "while waiting for " + printable(key.str()));
  }
  return std::move(result).match(
      [](Lease lease) { return std::optional(std::move(lease)); },
      [&](const Busy& busy) -> std::optional<Lease> {
        std::string text = fmt::format("{} is held by {}", printable(key.str()),
                                       busy.holder.empty() ? "another" : printable(busy.holder));
        text += busy.remaining ? fmt::format(", for another {} unless renewed", show(*busy.remaining))
                               : ", without an expiry";
        const char* around = std::getenv("REDLEASE_KEY");
        if (around != nullptr && key.str() == around) text += "; this process was started by redlease run for it";
        if (busy_exit != number(Exit::busy)) {
          // Whoever says 0 takes it for no news, and cron would mail it.
          if (busy_exit != 0 || Screen(STDERR_FILENO).terminal) context.remark(text);
          context.print_json_error("busy", text);
          return std::nullopt;
        }
        throw Failure(Exit::busy, "busy", text);
      },
      [](Claim claim) -> std::optional<Lease> {  // dropping it withdraws it
        throw Failure(Exit::unknown, "unknown_outcome", claim.error().detail + ". Here it is withdrawn");
      },
      [](const Unavailable& unavailable) -> std::optional<Lease> { throw failure(unavailable.error); });
}

void give_back(Lease& lease) {
  switch (lease.release()) {
    case ReleaseOutcome::released: return;
    case ReleaseOutcome::not_held: throw not_held(lease.key().str(), lease.loss());
    case ReleaseOutcome::unknown: throw Failure(Exit::unknown, "unknown_outcome", lease.last_error().detail);
    case ReleaseOutcome::unavailable: throw failure(lease.last_error());
  }
}

Failure not_held(const std::string& key, std::optional<LossCause> cause) {
  const std::string_view how = cause == LossCause::taken  ? "another holds it now"
                               : cause == LossCause::gone ? "it is free: it has expired, or was given back or broken"
                                                          : "its ttl has passed";
  return {Exit::lost, "lost", fmt::format("{} is not held with this token: {}", printable(key), how)};
}

}  // namespace redlease::cli
