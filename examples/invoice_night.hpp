#pragma once
// One night: the workers begin at 02:00, and whatever happens to them is told.
#include <sys/wait.h>

#include <csignal>
#include <map>
#include <utility>

#include "invoice_process.hpp"

using Tally = std::map<int, int>;  // how many ended with each ExitCode, or with minus a signal

inline std::map<pid_t, Shift> start_workers(Shift shift, int workers) {
  std::map<pid_t, Shift> at_work;
  for (int i = 1; i <= workers; ++i) {
    shift.worker = "worker " + std::to_string(i);
    at_work[start_worker(shift)] = shift;
  }
  return at_work;
}

// A stopped worker goes on when it is the last one.
inline Tally await_workers(std::map<pid_t, Shift> at_work) {
  const std::string progress = ", " + std::to_string(accident_at) + " invoices posted";
  Tally tally;
  pid_t paused = -1;
  while (!at_work.empty()) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WUNTRACED);
    expect(pid > 0, "the workers can be waited for");
    if (WIFSTOPPED(status)) {
      paused = pid;
      at_work[pid].tell("is stopped (SIGSTOP)" + progress);
    } else {
      const int killed_by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      if (killed_by == SIGKILL) at_work[pid].tell("is killed (SIGKILL)" + progress);
      ++tally[killed_by != 0 ? -killed_by : WEXITSTATUS(status)];
      at_work.erase(pid);
    }
    if (at_work.size() == 1 && at_work.contains(paused)) {
      at_work[paused].tell("goes on (SIGCONT) where it was stopped");
      ::kill(std::exchange(paused, -1), SIGCONT);
    }
  }
  return tally;
}

inline Tally run_night(Shift shift, int workers, const char* headline) {
  std::printf("\nNight %d: %s\n", static_cast<int>(shift.night), headline);
  shift.two_oclock = redlease::deadline_in(std::chrono::milliseconds(300));
  return await_workers(start_workers(std::move(shift), workers));
}
