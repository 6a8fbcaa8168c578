#include "cli/inherited.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace redlease::cli {
namespace {

void set(int signal, void (*handler)(int), struct sigaction& before) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigaction(signal, &action, &before);
}

}  // namespace

Inherited::Inherited() {
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask_);
  set(SIGPIPE, SIG_IGN, pipe_);
  set(SIGCHLD, SIG_DFL, child_);
  // For reading, so that writing is the error that it was; closed again by exec.
  int descriptor = 0;
  do descriptor = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  while (descriptor >= 0 && descriptor <= STDERR_FILENO);
  if (descriptor >= 0) ::close(descriptor);
}

bool ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void Inherited::restore() const noexcept {
  ::sigaction(SIGPIPE, &pipe_, nullptr);
  ::sigaction(SIGCHLD, &child_, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
}

}  // namespace redlease::cli
