#pragma once
// How the library starts its threads.
#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

namespace redlease {
inline namespace v0 {

// A thread that no signal of the program is delivered to: a handler would run on it in the middle of a renewal.
// Throws std::system_error if there can be none. `name`: up to 15 characters, for those who look at the process.
template <class... Work>
std::jthread start_thread(const char* name, Work&&... work) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::jthread thread(std::forward<Work>(work)...);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::pthread_setname_np(thread.native_handle(), name);
    return thread;
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
}

}  // namespace v0
}  // namespace redlease
