#pragma once
// Each worker is a process of its own: this program once more, with its shift as arguments.
#include <signal.h>
#include <sys/prctl.h>

#include "example.hpp"
#include "invoice_shift.hpp"

inline pid_t start_worker(const Shift& shift) {
  return spawn_self({shift.worker, shift.ledger, std::to_string(shift.night),
                     std::to_string(shift.two_oclock.time_since_epoch().count()), std::to_string(shift.wait.count()),
                     std::to_string(shift.accident)});
}

inline bool is_worker(int argc) { return argc == 7; }

inline ExitCode be_worker(char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // no worker, not even a stopped one, outlives the story
  const redlease::Deadline two_oclock(std::chrono::nanoseconds(std::stoll(argv[4])));
  return work({.worker = argv[1],
               .ledger = argv[2],
               .night = std::stoll(argv[3]),
               .two_oclock = two_oclock,
               .wait = redlease::Millis(std::stoll(argv[5])),
               .accident = std::atoi(argv[6])});
}
