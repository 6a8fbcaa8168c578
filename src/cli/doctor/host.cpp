// Whether this host keeps its processes from running.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <map>
#include <vector>

#include "cli/doctor/host_facts.hpp"
#include "cli/duration.hpp"

namespace redlease::cli::doctor {

std::map<std::string, std::int64_t> cpu_stat(std::istream& in) {
  std::map<std::string, std::int64_t> fields;
  std::string name;
  for (std::int64_t value{}; in >> name >> value;) fields.emplace(name, value);
  return fields;
}

Verdict suspended(std::chrono::nanoseconds boottime_less_monotonic) {
  using namespace std::chrono_literals;
  const std::string total = show(std::chrono::duration_cast<Millis>(boottime_less_monotonic));
  if (boottime_less_monotonic < 1s) return ok("never since it started");
  return warn("for " + total + " since it started",
              "leases run out while a host sleeps: what it holds is lost when it wakes, and work goes on until the "
              "first look at the clock",
              "keep this host awake (systemctl mask sleep.target suspend.target), and check the fence at the resource");
}

Verdict throttled(const std::map<std::string, std::int64_t>& stat) {
  const auto periods = stat.find("nr_periods"), stopped = stat.find("nr_throttled");
  if (periods == stat.end() || stopped == stat.end()) return unknown("no cpu.stat of this process's cgroup tells it");
  if (stopped->second == 0) return ok("never");
  const double share =
      static_cast<double>(stopped->second) / static_cast<double>(std::max<std::int64_t>(periods->second, 1));
  const std::string found =
      fmt::format("in {} of {} periods ({:.1f} %)", stopped->second, periods->second, share * 100);
  if (share < 0.01) return ok(found);
  return warn(found,
              "the kernel stops every thread here when the CPU quota is used up: renewals are late, and a holder "
              "may not run at its deadline",
              "raise or remove the CPU limit of this container (cpu.max, or limits.cpu in Kubernetes)");
}

namespace {

std::chrono::nanoseconds read_clock(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

Verdict look_suspended(Exam&) {
  const auto monotonic = read_clock(CLOCK_MONOTONIC);
  return suspended(read_clock(CLOCK_BOOTTIME) - monotonic);
}

// The group of this process where the hierarchy is told, else the one at the root of what it sees, as in a container.
Verdict look_throttled(Exam&) {
  std::vector<std::string> files;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) files.push_back("/sys/fs/cgroup" + path + "/cpu.stat");
    if (controllers == "cpu" || controllers.starts_with("cpu,") || controllers.ends_with(",cpu")) {
      files.push_back("/sys/fs/cgroup/cpu" + path + "/cpu.stat");
    }
  }
  files.insert(files.end(), {"/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpu/cpu.stat"});
  for (const std::string& file : files) {
    std::ifstream in(file);
    if (const auto stat = cpu_stat(in); stat.contains("nr_throttled")) return throttled(stat);
  }
  return throttled({});
}

}  // namespace

std::span<const Check> host_checks() {
  static constexpr std::array<Check, 2> checks{
      {{"host.suspended", look_suspended}, {"host.throttled", look_throttled}}};
  return checks;
}

}  // namespace redlease::cli::doctor
