// The server's clock against this host's.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <thread>

#include "cli/doctor/exam.hpp"
#include "cli/doctor/finding.hpp"
#include "cli/duration.hpp"

namespace redlease::cli::doctor {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

constexpr double drift = 0.01;  // ClientOptions::drift

// Over which the rate is measured: long enough to tell a quarter of the drift, if that can be had.
LeaseClock::duration window(LeaseClock::duration round_trip) {
  return std::clamp<LeaseClock::duration>(round_trip * 400, 1s, 5s);
}

double micros(LeaseClock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

Verdict offset(Exam& exam) {
  const auto sample = exam.best_time(9);
  if (!sample) return exam.unknown();
  const double off = static_cast<double>(sample->server - sample->here), error = micros(sample->round_trip()) / 2;
  const auto size = [](double us) {
    const double unit = std::abs(us) < 60e6 ? 1e3 : 1e6;  // in full seconds where milliseconds say nothing
    return show(Millis(std::llround(std::abs(us) / unit) * std::llround(unit / 1e3)));
  };
  if (std::abs(off) - error < 1e6) {
    return ok(fmt::format("{} {} this host's, give or take {:.1f} ms", size(off), off < 0 ? "behind" : "ahead of",
                          error / 1'000));
  }
  return warn(fmt::format("the server's clock is {} {} this host's", size(off), off < 0 ? "behind" : "ahead of"),
              "one of the two is wrong. Leases do not compare them, but the day the server's clock is set right it "
              "jumps: forward, it ends leases before their holders know; backward, it keeps them longer and fences "
              "stand still",
              "run chrony or ntpd on both, slewing and never stepping while the server runs");
}

// Behind everything else, so that much time has passed since the first sample.
Verdict rate(Exam& exam) {
  const auto& first = exam.first_time();
  if (!first) return exam.time(), exam.unknown();
  while (LeaseClock::now() - first->after < window(first->round_trip()) && !exam.stop().stop_requested())
    std::this_thread::sleep_for(20ms);
  const auto last = exam.best_time(9);
  if (!last) return exam.unknown();
  const double here = micros((last->before - first->before) + (last->after - first->after)) / 2;
  const auto there = static_cast<double>(last->server - first->server);
  const double error = micros(first->round_trip() + last->round_trip()) / 2 / here;
  const double off = there / here - 1;
  const std::string found = fmt::format("{:+.2f} % against this host's, give or take {:.2f} %", off * 100, error * 100);
  if (error > drift / 2) return unknown(found + ": the round trips are too long to tell more");
  if (std::abs(off) - error > drift) {
    return fail("the server's clock runs at " + found,
                "it was set while leases were held, or runs at another rate, by more than the 1 % that holders allow "
                "for: the server may end a lease before its holder knows",
                "let chrony or ntpd slew slowly (maxslewrate) and never step; give ClientOptions::drift more than the "
                "difference");
  }
  if (std::abs(off) - error > drift / 2) {
    return warn("the server's clock runs at " + found, "more than half of the 1 % that holders allow for is used up",
                "let chrony or ntpd slew more slowly (maxslewrate), or raise ClientOptions::drift");
  }
  return ok(found);
}

}  // namespace

std::span<const Check> clock_checks() {
  static constexpr std::array<Check, 2> checks{{{"clock.offset", offset}, {"clock.rate", rate}}};
  return checks;
}

}  // namespace redlease::cli::doctor
