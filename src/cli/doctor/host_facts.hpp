#pragma once
// What is judged of this host, apart from how it is read.
#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>

#include "cli/doctor/finding.hpp"

namespace redlease::cli::doctor {

/// A cgroup's cpu.stat.
std::map<std::string, std::int64_t> cpu_stat(std::istream&);
Verdict throttled(const std::map<std::string, std::int64_t>& cpu_stat);
/// By what CLOCK_BOOTTIME, which runs on in a suspend, is ahead of CLOCK_MONOTONIC, which does not.
Verdict suspended(std::chrono::nanoseconds boottime_less_monotonic);

}  // namespace redlease::cli::doctor
