#include "measure.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <string>
#include <system_error>
#include <utility>

namespace bench {

namespace {

constexpr double longest_turn_us = 100'000;  // on a busy machine a turn has fewer cycles

double clock_us(clockid_t clock) noexcept {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

}  // namespace

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void pin_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(core), &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) {
    throw std::system_error(errno, std::system_category(), "cannot run on core " + std::to_string(core));
  }
}

double now_us() noexcept { return clock_us(CLOCK_MONOTONIC); }
double cpu_us() noexcept { return clock_us(CLOCK_PROCESS_CPUTIME_ID); }

Rounds::Rounds(int rounds, const std::vector<Variant>& variants) {
  for (const Variant& variant : variants) variant();
  for (int round = 0; round < rounds; ++round) {
    std::vector<Turn> turns(variants.size());
    // Each in turn goes first, so that none always follows the same other.
    for (std::size_t i = 0; i < variants.size(); ++i) {
      const std::size_t at = (i + static_cast<std::size_t>(round)) % variants.size();
      turns[at] = variants[at]();
    }
    turns_.push_back(std::move(turns));
  }
}

double Rounds::typical(std::size_t variant, double Turn::*figure) const {
  std::vector<double> values;
  for (const auto& turns : turns_) values.push_back(turns[variant].*figure);
  return median(std::move(values));
}

double Rounds::ratio(std::size_t variant, std::size_t to, double Turn::*figure) const {
  std::vector<double> values;
  for (const auto& turns : turns_) values.push_back(turns[variant].*figure / turns[to].*figure);
  return median(std::move(values));
}

Turn time_cycles(int at_most, const std::function<void()>& cycle) {
  std::vector<double> times;
  times.reserve(static_cast<std::size_t>(at_most));
  const double cpu = cpu_us();
  const double enough = now_us() + longest_turn_us;
  double now = 0;
  do {
    const double begun = now_us();
    cycle();
    now = now_us();
    times.push_back(now - begun);
  } while (--at_most > 0 && now < enough);
  const double each = (cpu_us() - cpu) / static_cast<double>(times.size());
  return {median(std::move(times)), each};
}

}  // namespace bench
