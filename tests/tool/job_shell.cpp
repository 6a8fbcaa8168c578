#include "tool/job_shell.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <utility>

#include "support/sockets.hpp"
#include "tool/tool.hpp"

namespace redlease {
inline namespace v0 {
namespace {

constexpr char order_fg = 'f', order_bg = 'b';

std::string drained(int descriptor) {
  std::string out;
  char block[4096];
  for (ssize_t n = 0; (n = ::read(descriptor, block, sizeof block)) > 0;)
    out.append(block, static_cast<std::size_t>(n));
  return out;
}

void open_terminal(const char* name) {
  ::setsid();
  const int terminal = ::open(name, O_RDWR);
  ::ioctl(terminal, TIOCSCTTY, 0);
  for (int fd = 0; fd < 3; ++fd) ::dup2(terminal, fd);
  ::close(terminal);
}

void take_terminal(pid_t group) { ::tcsetpgrp(0, group); }

[[noreturn]] void be_shell(pid_t job, int orders, int news) {
  const auto tell = [news](const std::string& text) { (void)!::write(news, text.data(), text.size()); };
  for (;;) {
    int status = 0;
    if (::waitpid(job, &status, WUNTRACED) != job) ::_exit(1);
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      tell(WIFEXITED(status) ? "exited " + std::to_string(WEXITSTATUS(status)) + " "
                             : "killed " + std::to_string(WTERMSIG(status)) + " ");
      ::pause();  // the session, and the terminal, last until the test has looked
    }
    take_terminal(::getpgrp());
    tell("stopped " + std::to_string(WSTOPSIG(status)) + " ");
    char order = 0;
    if (::read(orders, &order, 1) != 1) ::_exit(0);
    if (order == order_fg) take_terminal(job);
    ::kill(-job, SIGCONT);
  }
}

}  // namespace

JobShell::JobShell(const Job& job, Start start) {
  master_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (master_ < 0 || ::grantpt(master_) != 0 || ::unlockpt(master_) != 0) throw_errno("posix_openpt");
  const std::string terminal = ::ptsname(master_);
  int orders[2], news[2];
  if (::pipe2(orders, O_CLOEXEC) != 0 || ::pipe2(news, O_CLOEXEC) != 0) throw_errno("pipe2");
  orders_ = orders[1];
  news_ = news[0];
  ::fcntl(news_, F_SETFL, O_NONBLOCK);
  std::vector<std::string> argv = job.argv, env = job.env;
  for (char** entry = environ; *entry != nullptr; ++entry) env.emplace_back(*entry);
  const auto argv_pointers = pointers(argv), env_pointers = pointers(env);
  const auto run = [&] {
    if (!job.stdout_file.empty()) ::dup2(::open(job.stdout_file.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), 1);
    ::execve(argv_pointers[0], argv_pointers.data(), env_pointers.data());
    ::_exit(99);
  };
  shell_ = ::fork();
  if (shell_ < 0) throw_errno("fork");
  if (shell_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    open_terminal(terminal.c_str());
    if (start == Start::leader) run();
    ::signal(SIGTTOU, SIG_IGN);
    const pid_t child = ::fork();
    if (child == 0) {
      ::setpgid(0, 0);
      if (start == Start::foreground) take_terminal(::getpid());
      ::signal(SIGTTOU, SIG_DFL);
      run();
    }
    ::setpgid(child, child);
    if (start == Start::foreground) take_terminal(child);
    (void)!::write(news[1], &child, sizeof child);
    ::close(orders[1]);
    be_shell(child, orders[0], news[1]);
  }
  ::close(orders[0]);
  ::close(news[1]);
  job_ = shell_;
  if (start == Start::leader) return;
  ::fcntl(news_, F_SETFL, 0);
  if (::read(news_, &job_, sizeof job_) != sizeof job_) throw std::runtime_error("no job");
  ::fcntl(news_, F_SETFL, O_NONBLOCK);
}

JobShell::~JobShell() {
  const std::string all = told();
  if (shell_ > 0) {
    if (all.find("exited") == all.npos && all.find("killed") == all.npos) ::kill(job_, SIGKILL);  // not reaped yet
    ::kill(shell_, SIGKILL);
    while (::waitpid(shell_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  for (const int fd : {master_, orders_, news_}) ::close(fd);
}

int JobShell::hang_up() {
  ::close(std::exchange(master_, -1));
  int status = 0;
  const Deadline end = deadline_in(Millis(10'000));
  while (::waitpid(shell_, &status, WNOHANG) == 0) {
    if (LeaseClock::now() >= end) ::kill(shell_, SIGKILL);
    std::this_thread::sleep_for(Millis(5));
  }
  shell_ = job_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void JobShell::type(const std::string& text) const { (void)!::write(master_, text.data(), text.size()); }

void JobShell::resize(unsigned short rows, unsigned short columns) const {
  const winsize size{rows, columns, 0, 0};
  ::ioctl(master_, TIOCSWINSZ, &size);
}

std::string JobShell::shown() { return shown_ += drained(master_); }
std::string JobShell::told() { return told_ += drained(news_); }
void JobShell::fg() const { (void)!::write(orders_, &order_fg, 1); }
void JobShell::bg() const { (void)!::write(orders_, &order_bg, 1); }

pid_t JobShell::in_front() const {
  pid_t group = 0;
  return ::ioctl(master_, TIOCGPGRP, &group) == 0 ? group : -1;
}

}  // namespace v0
}  // namespace redlease
