#include "cli/command.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/exit_code.hpp"
#include "cli/output.hpp"

namespace redlease::cli {
namespace {

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  out.reserve(words.size() + 1);
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

// Where execvp would look. It is not async-signal-safe, so the child is told beforehand.
std::vector<std::string> places_of(const std::string& name) {
  if (name.empty() || name.find('/') != name.npos) return {name};
  const char* variable = std::getenv("PATH");
  std::string_view path = variable != nullptr ? variable : "/usr/local/bin:/bin:/usr/bin";
  std::vector<std::string> out;
  for (;;) {
    const auto end = path.find(':');
    const std::string_view directory = path.substr(0, end);
    out.push_back(directory.empty() ? "./" + name : std::string(directory) + "/" + name);
    if (end == path.npos) return out;
    path.remove_prefix(end + 1);
  }
}

// All that the child needs, made before the fork: other threads may hold any lock at that moment, malloc's included.
class Preparation {
 public:
  Preparation(std::vector<std::string> argv, std::vector<std::string> environment, const Inherited& inherited)
      : inherited_(inherited),
        argv_(std::move(argv)),
        environment_(std::move(environment)),
        places_(places_of(argv_.front())),
        argv_pointers_(pointers(argv_)),
        environment_pointers_(pointers(environment_)),
        script_pointers_(argv_pointers_) {
    script_pointers_.insert(script_pointers_.begin(), shell_.data());
  }

  /// In the child; calls nothing but what is async-signal-safe. Returns errno if nothing could be run.
  int become_the_command(int terminal) noexcept {
    ::setpgid(0, 0);
    if (terminal >= 0) ::tcsetpgrp(terminal, ::getpid());  // before it could read; SIGTTOU is still blocked
#ifdef PR_SET_PDEATHSIG
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent_) ::raise(SIGKILL);  // it died before the line above
#endif
    inherited_.restore();
    int error = ENOENT;
    for (const std::string& place : places_) {
      ::execve(place.c_str(), argv_pointers_.data(), environment_pointers_.data());
      if (errno == ENOEXEC) {  // a script without "#!", for the shell, as execvp does it
        script_pointers_[1] = const_cast<char*>(place.c_str());
        ::execve(shell_.c_str(), script_pointers_.data(), environment_pointers_.data());
      }
      if (errno == ENOENT || errno == ENOTDIR) continue;
      error = errno;
      if (error != EACCES) break;
    }
    return error;
  }

 private:
  const pid_t parent_{::getpid()};
  const Inherited& inherited_;
  std::string shell_{"/bin/sh"};
  std::vector<std::string> argv_, environment_, places_;
  std::vector<char*> argv_pointers_, environment_pointers_, script_pointers_;
};

Failure not_run(const std::string& name, int error) {
  const bool absent = error == ENOENT || error == ENOTDIR;
  std::string why = std::generic_category().message(error);
  if (absent && name.find('/') == name.npos) {
    why = "it is not in PATH";
  } else if (absent && ::access(name.c_str(), F_OK) == 0) {
    why = "it is there, but the interpreter that it names is not";
  }
  if (absent && name.find(' ') != name.npos) why += " (a line for the shell goes as: sh -c '…')";
  return {absent ? 127 : 126, absent ? "not_found" : "not_executable",
          fmt::format("'{}' cannot be run: {}; the lease was given back", printable(name), why)};
}

std::system_error failed(const char* call) { return {errno, std::generic_category(), call}; }

}  // namespace

Command::Command(const std::vector<std::string>& argv, std::vector<std::string> environment, const Inherited& inherited,
                 Terminal& terminal, bool in_foreground)
    : name_(argv.front()) {
  Preparation prepared(argv, std::move(environment), inherited);
  // Orphans of the group come to us instead of to init, so that their end is seen, and so that no other group can have
  // the number of ours while one is left.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  int failure[2];
  if (::pipe2(failure, O_CLOEXEC | O_NONBLOCK) != 0) throw failed("pipe2");
  // Not posix_spawn: that has no parent-death signal.
  leader_ = ::fork();
  if (leader_ == 0) {
    const int error = prepared.become_the_command(in_foreground ? terminal.descriptor() : -1);
    (void)!::write(failure[1], &error, sizeof error);
    ::_exit(127);
  }
  const int fork_error = errno;
  ::close(failure[1]);
  failure_ = failure[0];
  if (leader_ < 0) {
    ::close(failure_);
    errno = fork_error;
    throw failed("fork");
  }
  ::setpgid(leader_, leader_);  // here and there, since either may come first
  if (in_foreground) terminal.give(leader_);
}

Command::~Command() {
  signal_group(SIGKILL);
  while (!over_) {
    siginfo_t info{};
    if (::waitid(P_PGID, static_cast<id_t>(leader_), &info, WEXITED) != 0 && errno != EINTR) over_ = true;
  }
  ::close(failure_);
}

void Command::reap() {
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG) != 0 || info.si_pid == 0) break;
    if (info.si_pid != leader_) continue;  // an orphan
    if (info.si_code == CLD_STOPPED) {
      stopped_by_ = info.si_status;
    } else {
      status_ = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
      if (::read(failure_, &start_error_, sizeof start_error_) < 0) start_error_ = 0;
    }
  }
  siginfo_t left{};
  over_ = status_ && ::waitid(P_PGID, static_cast<id_t>(leader_), &left, WEXITED | WNOHANG | WNOWAIT) != 0;
}

void Command::check_that_it_ran() const {
  if (start_error_ != 0) throw not_run(name_, start_error_);
}

int Command::stopped_by() { return std::exchange(stopped_by_, 0); }

// What was not reaped yet keeps its number, so that no other can be meant.
void Command::signal_leader(int signal) const {
  if (!status_) ::kill(leader_, signal);
}

void Command::signal_group(int signal) const {
  if (over_) return;
  ::kill(-leader_, signal);
  if (!status_ && ::getpgid(leader_) != leader_) ::kill(leader_, signal);  // it has left its own group
}

}  // namespace redlease::cli
