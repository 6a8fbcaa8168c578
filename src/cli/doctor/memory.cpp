// Whether the server throws leases away to make room.
#include <fmt/format.h>

#include <array>

#include "cli/doctor/exam.hpp"
#include "cli/doctor/finding.hpp"

namespace redlease::cli::doctor {
namespace {

std::string mib(std::int64_t bytes) { return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20)); }

Verdict policy(Exam& exam) {
  const auto limit = to_integer(exam.fact("maxmemory", "maxmemory"));
  if (!limit) return exam.unknown();
  if (*limit == 0) return ok("no maxmemory: nothing is evicted");
  const auto policy = exam.fact("maxmemory_policy", "maxmemory-policy");
  if (!policy) return exam.unknown();
  const std::string found = fmt::format("{} with a maxmemory of {}", *policy, mib(*limit));
  if (*policy == "noeviction") return ok(found);
  const bool first = policy->starts_with("volatile-");
  if (!first && !policy->starts_with("allkeys-")) return unknown(found);
  return fail(found,
              first ? "keys with an expiry are thrown away when memory is short, and every lease is one: a held lease "
                      "vanishes and the next one to ask gets it, so there are two holders"
                    : "any key is thrown away when memory is short: a held lease vanishes and the next one to ask gets "
                      "it, so there are two holders",
              "`CONFIG SET maxmemory-policy noeviction`, and in its configuration file (CONFIG REWRITE) to keep it; or "
              "a server of its own for "
              "leases");
}

Verdict evictions(Exam& exam) {
  const auto evicted = exam.number("evicted_keys");
  if (!evicted) return exam.unknown();
  if (*evicted == 0) return ok("none since the server started");
  return warn(fmt::format("{} keys since the server started", *evicted),
              "leases may have been among them: they ended without their holders' knowing",
              "`CONFIG SET maxmemory-policy noeviction`, then `CONFIG RESETSTAT` to count afresh");
}

Verdict room(Exam& exam) {
  const auto limit = to_integer(exam.fact("maxmemory", "maxmemory"));
  if (!limit) return exam.unknown();
  if (*limit == 0) return ok("no maxmemory");
  const auto used = exam.number("used_memory");
  if (!used) return exam.unknown();
  const std::string found = fmt::format("{} of {} used", mib(*used), mib(*limit));
  if (*used < *limit / 10 * 9) return ok(found);
  return warn(found, "when it is full, nothing is granted any more (OOM); renewals and releases still work",
              fmt::format("`CONFIG SET maxmemory {}`, or keep other data elsewhere", *limit * 2));
}

}  // namespace

std::span<const Check> memory_checks() {
  static constexpr std::array<Check, 3> checks{
      {{"memory.policy", policy}, {"memory.evictions", evictions}, {"memory.room", room}}};
  return checks;
}

}  // namespace redlease::cli::doctor
