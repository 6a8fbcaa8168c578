#pragma once
// What a worker is told for one night, what it tells, and how its night ends.
#include <redlease/redlease.hpp>

#include <chrono>
#include <cstdio>
#include <string>

constexpr const char* nightly_lease = "example:nightly-invoices";
constexpr redlease::Millis nightly_ttl = std::chrono::seconds(2);
constexpr std::size_t accident_at = 5;  // that many invoices are posted when a night's accident happens

struct Shift {
  std::string worker{}, ledger{};
  std::int64_t night{};
  redlease::Deadline two_oclock{};
  redlease::Millis wait{0};
  int accident{};  // the signal that stops or kills whoever gets to accident_at, or 0

  // One line of the story, with the time of that night.
  void tell(const std::string& text) const {
    const auto ms = std::chrono::duration_cast<redlease::Millis>(redlease::LeaseClock::now() - two_oclock).count();
    std::printf("  02:00:%02d.%03d  %-8s  %s\n", static_cast<int>(ms / 1000), static_cast<int>(ms % 1000),
                worker.c_str(), text.c_str());
  }
};

enum ExitCode : int { finished = 0, skipped = 10, lost = 11, fenced_off = 12, out_of_reach = 13 };

// A whole night: invoice_shift.cpp.
ExitCode work(const Shift&);

// The part of it that needs the lease: invoice_worker.cpp.
ExitCode post_invoices(const Shift&, redlease::LeaseGuard);
