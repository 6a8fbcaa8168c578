#include "support/children.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>

#include "support/sleepless.hpp"
#include "support/sockets.hpp"

namespace redlease {
inline namespace v0 {
namespace {

[[noreturn]] void run_child(const std::function<void(int)>& fn, int index, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  int status = 0;
  try {
    fn(index);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "child %d: %s\n", index, e.what());
    status = 1;
  } catch (...) {
    std::fprintf(stderr, "child %d threw what is no std::exception\n", index);
    status = 1;
  }
  ::_exit(status);
}

}  // namespace

Children::Children(int count, const std::function<void(int)>& fn) {
  // What stands in a buffer now would be written by every child that flushes.
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  for (int i = 0; i < count; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) run_child(fn, i, parent);
    if (pid < 0) {
      const int error = errno;
      for (std::size_t made = 0; made < pids_.size(); ++made) kill9(static_cast<int>(made));
      errno = error;
      throw_errno("fork");
    }
    pids_.push_back(pid);
    reaped_.push_back(false);
    statuses_.push_back(0);
  }
}

Children::~Children() { wait(Millis(0)); }

bool Children::reap(std::size_t index, int options) {
  if (reaped_[index]) return true;
  int status = 0;
  pid_t ended = 0;
  do ended = ::waitpid(pids_[index], &status, options);
  while (ended < 0 && errno == EINTR);
  if (ended < 0) throw_errno("waitpid for child " + std::to_string(index));
  if (ended == 0) return false;
  reaped_[index] = true;
  statuses_[index] = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return true;
}

void Children::kill9(int index) {
  const auto i = static_cast<std::size_t>(index);
  if (reaped_.at(i)) return;
  ::kill(pids_[i], SIGKILL);
  reap(i, 0);
}

std::vector<int> Children::wait(Millis limit) {
  eventually(
      [&] {
        bool all = true;
        for (std::size_t i = 0; i < pids_.size(); ++i) all = reap(i, WNOHANG) && all;
        return all;
      },
      limit);
  for (std::size_t i = 0; i < pids_.size(); ++i) kill9(static_cast<int>(i));
  return statuses_;
}

std::vector<int> run_children(int count, const std::function<void(int)>& fn, Millis limit) {
  return Children(count, fn).wait(limit);
}

}  // namespace v0
}  // namespace redlease
