#include "cli/doctor/report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/duration.hpp"
#include "cli/output.hpp"

namespace redlease::cli::doctor {
namespace {

std::string_view name_of(Status status) {
  constexpr std::array<std::string_view, 4> names{"ok", "unknown", "warn", "fail"};
  return names.at(static_cast<std::size_t>(status));
}

Tint tint_of(Status status) {
  constexpr std::array tints{Tint::good, Tint::faint, Tint::warn, Tint::bad};
  return tints.at(static_cast<std::size_t>(status));
}

long count(const Report& report, Status status) {
  return std::count_if(report.findings.begin(), report.findings.end(),
                       [&](const Finding& finding) { return finding.verdict.status == status; });
}

std::string plural(long n, std::string_view noun) { return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s"); }

std::string described(const Finding& finding, const Screen& screen) {
  const auto& [status, found, risk, mend] = finding.verdict;
  std::string out =
      fmt::format("{}  {:<24} {}\n", screen.tinted(tint_of(status), fmt::format("{:<7}", name_of(status))), finding.id,
                  printable(found));
  // What is well enough has its risk in the JSON alone.
  if (status < Status::warn) return out;
  out += fmt::format("{:9}risk: {}\n", "", printable(risk));
  out += fmt::format("{:9}mend: {}\n\n", "", printable(mend));
  return out;
}

}  // namespace

int Report::exit() const {
  if (count(*this, Status::fail) > 0) return 2;
  if (count(*this, Status::warn) > 0) return 1;
  // That this host is well says nothing about the server.
  const bool learnt = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.verdict.status == Status::ok && !finding.id.starts_with("host.");
  });
  return learnt ? 0 : 3;
}

void tell(const Report& report, const Exam& exam) {
  const Screen screen(STDOUT_FILENO);
  const bool quiet = exam.context().quiet();
  std::string out;
  if (!quiet) {
    out += fmt::format("{} for leases of {}, scratch key {}\n\n", exam.endpoint().display, show(exam.terms().ttl),
                       printable(exam.scratch_key()));
  }
  for (const Status status : {Status::fail, Status::warn, Status::unknown, Status::ok}) {
    if (quiet && status < Status::warn) break;
    std::set<std::string> cures;  // of the unknown: mostly one for all
    for (const Finding& finding : report.findings) {
      if (finding.verdict.status != status) continue;
      out += described(finding, screen);
      if (status == Status::unknown && !finding.verdict.mend.empty()) cures.insert(finding.verdict.mend);
    }
    for (const std::string& cure : cures) out += fmt::format("{:9}mend: {}\n", "", printable(cure));
  }
  if (!quiet) {
    out += fmt::format("\n{}, {}, {} unknown, {} ok", plural(count(report, Status::fail), "failure"),
                       plural(count(report, Status::warn), "warning"), count(report, Status::unknown),
                       count(report, Status::ok));
    if (exam.refusals() > 0) {
      out += fmt::format("; {} left an entry in the server's ACL LOG",
                         plural(static_cast<long>(exam.refusals()), "refused command"));
    }
    out += "\n";
  }
  print(out);
}

Json to_json(const Report& report, const Exam& exam) {
  Json checks = Json::array();
  for (const auto& [id, verdict] : report.findings) {
    checks.push_back({{"id", id},
                      {"status", name_of(verdict.status)},
                      {"found", verdict.found},
                      {"risk", verdict.risk},
                      {"mend", verdict.mend}});
  }
  return {{"server", exam.endpoint().display},
          {"ttl_ms", exam.terms().ttl.count()},
          {"scratch_key", exam.scratch_key()},
          {"checks", std::move(checks)},
          {"summary",
           {{"fail", count(report, Status::fail)},
            {"warn", count(report, Status::warn)},
            {"unknown", count(report, Status::unknown)},
            {"ok", count(report, Status::ok)},
            {"refused_commands", exam.refusals()}}},
          {"exit", report.exit()}};
}

}  // namespace redlease::cli::doctor
