// What the server forgets when it restarts, and whether it still takes writes.
#include <fmt/format.h>

#include <array>

#include "cli/doctor/exam.hpp"
#include "cli/doctor/finding.hpp"
#include "cli/duration.hpp"

namespace redlease::cli::doctor {
namespace {

constexpr std::string_view forgets =
    "a restart within a lease's ttl forgets it while its holder works on, and the next one to ask gets it: two holders";
constexpr std::string_view keep = ", and in its configuration file (CONFIG REWRITE) to keep it";

Verdict persistence(Exam& exam) {
  const auto aof = exam.fact("aof_enabled", "appendonly");
  if (!aof) return exam.unknown();
  const bool on = *aof == "1" || *aof == "yes";
  if (!on && *aof != "0" && *aof != "no") return unknown("the append-only file is '" + *aof + "'");
  const auto mend = fmt::format("`CONFIG SET appendonly yes`{}", keep);
  if (!on) {
    const auto save = exam.config("save");
    if (!save) {
      return warn("no append-only file; whether snapshots are made is not known: " + exam.trouble(),
                  std::string(forgets), mend);
    }
    if (save->empty()) return fail("none: no append-only file, no snapshots", std::string(forgets), mend);
    return warn(fmt::format("snapshots alone (save {}), no append-only file", *save),
                "a crash forgets every lease since the last snapshot, and brings back those given up since: " +
                    std::string(forgets),
                mend);
  }
  const auto fsync = exam.config("appendfsync");
  if (!fsync) return exam.unknown("an append-only file; how it is synced: ");
  const std::string found = fmt::format("an append-only file, appendfsync {}", *fsync);
  if (*fsync == "always") return ok(found);
  if (*fsync == "everysec") {
    Verdict verdict = ok(found + ": only a crash of the whole machine forgets, up to two seconds");
    verdict.risk = "after a power failure the leases of the last two seconds may be granted a second time";
    verdict.mend = "`CONFIG SET appendfsync always`, at the price of a disk write for each lease";
    return verdict;
  }
  if (*fsync != "no") return unknown(found);
  return warn(found, "a crash of the machine forgets up to half a minute of leases: " + std::string(forgets),
              fmt::format("`CONFIG SET appendfsync everysec`{}, or always", keep));
}

Verdict disk(Exam& exam) {
  const auto snapshot = exam.info("rdb_last_bgsave_status"), log = exam.info("aof_last_write_status");
  const auto bad = [](const std::optional<std::string>& status) { return status && *status != "ok"; };
  if (bad(log)) {
    return fail("the last write to the append-only file failed",
                "the server refuses all writes (MISCONF): nothing is granted, and nothing renewed",
                "make room on the disk or mend the rights on its directory (CONFIG GET dir); it goes on by itself");
  }
  if (bad(snapshot)) {
    const auto stops = exam.config("stop-writes-on-bgsave-error"), save = exam.config("save");
    const bool refuses = stops == "yes" && save && !save->empty();
    const bool goes_on = stops == "no" || (save && save->empty());
    const std::string mend = "make room on the disk or mend its directory (CONFIG GET dir), then `BGSAVE`";
    if (refuses) {
      return fail("the last snapshot failed, and stop-writes-on-bgsave-error is yes",
                  "the server refuses all writes (MISCONF): nothing is granted, and nothing renewed", mend);
    }
    return warn(fmt::format("the last snapshot failed{}", goes_on ? ", and writes go on" : ""),
                goes_on ? "what was not written will be forgotten by a restart"
                        : "unless stop-writes-on-bgsave-error is no, the server refuses all writes (MISCONF)",
                mend);
  }
  if (!snapshot) return exam.unknown();
  return ok("no write to the disk has failed");
}

Verdict restart(Exam& exam) {
  const auto uptime = exam.number("uptime_in_seconds");
  if (!uptime) return exam.unknown();
  const Millis up{*uptime * 1'000};
  if (up >= exam.terms().ttl) return ok("up for " + show(up));
  return warn("up for " + show(up) + " only, which is less than the ttl",
              "whoever got a lease before the restart may still believe in it, and the server may have forgotten it",
              fmt::format("wait another {} before you count on leases; and see durability.persistence",
                          show(exam.terms().ttl - up)));
}

}  // namespace

std::span<const Check> durability_checks() {
  static constexpr std::array<Check, 3> checks{
      {{"durability.persistence", persistence}, {"durability.disk", disk}, {"durability.restart", restart}}};
  return checks;
}

}  // namespace redlease::cli::doctor
