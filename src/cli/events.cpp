#include "cli/events.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <system_error>

namespace redlease::cli {
namespace {

sigset_t all_but_faults() {
  sigset_t set;
  sigfillset(&set);
  for (const int signal :
       {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPIPE, SIGPROF, SIGVTALRM, SIGXCPU, SIGXFSZ}) {
    sigdelset(&set, signal);
  }
  return set;
}

int made(int descriptor, const char* call) {
  if (descriptor < 0)
    throw std::system_error(errno, std::generic_category(), std::string("the command cannot be watched over: ") + call);
  return descriptor;
}

}  // namespace

Events::Events() {
  const sigset_t set = all_but_faults();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = made(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd");
  timer_ = made(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd_create");
  bell_ = made(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd");
}

// The signals stay blocked: what is left to do is not to be interrupted.
Events::~Events() {
  for (const int descriptor : {signals_, timer_, bell_}) ::close(descriptor);
}

void Events::wait(Deadline until) {
  // Zero would switch it off.
  const auto since_boot = std::max(until.time_since_epoch(), LeaseClock::duration(1));
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_boot);
  itimerspec at{};
  at.it_value.tv_sec = static_cast<time_t>(seconds.count());
  at.it_value.tv_nsec = static_cast<long>((since_boot - seconds).count());
  ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &at, nullptr);
  std::array<pollfd, 3> of{{{signals_, POLLIN, 0}, {timer_, POLLIN, 0}, {bell_, POLLIN, 0}}};
  ::poll(of.data(), of.size(), -1);
  std::uint64_t count = 0;
  if (of[2].revents != 0) (void)!::read(bell_, &count, sizeof count);
}

int Events::next_signal() {
  signalfd_siginfo info{};
  if (::read(signals_, &info, sizeof info) != sizeof info) return 0;
  return static_cast<int>(info.ssi_signo);
}

void Events::wake() noexcept {
  const std::uint64_t one = 1;
  (void)!::write(bell_, &one, sizeof one);
}

void Events::let_through(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

}  // namespace redlease::cli
