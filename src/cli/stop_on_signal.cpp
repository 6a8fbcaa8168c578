#include "cli/stop_on_signal.hpp"

#include <pthread.h>

#include <csignal>

#include "cli/inherited.hpp"

namespace redlease::cli {
namespace {

constinit std::atomic<int> last_signal{0};

sigset_t endings() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGUSR1}) sigaddset(&set, signal);  // USR1: from end()
  return set;
}

}  // namespace

StopOnSignal::StopOnSignal() {
  sigset_t set = endings();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  listener_ = std::jthread([this, set](const std::stop_token& over) {
    while (!over.stop_requested()) {
      int signal = 0;
      if (::sigwait(&set, &signal) != 0 || signal == SIGUSR1 || ignored(signal)) continue;
      last_signal = signal;
      int none = 0;
      signal_.compare_exchange_strong(none, signal);
      stop_.request_stop();
    }
  });
}

int StopOnSignal::last() noexcept { return last_signal; }

int StopOnSignal::end() noexcept {
  if (listener_.joinable()) {
    listener_.request_stop();
    ::pthread_kill(listener_.native_handle(), SIGUSR1);
    listener_.join();
  }
  return signal();
}

}  // namespace redlease::cli
