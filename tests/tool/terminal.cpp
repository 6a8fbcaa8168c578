#include "tool/terminal.hpp"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "support/sockets.hpp"

namespace redlease {
inline namespace v0 {

Terminal::Terminal(const std::vector<std::string>& arguments, const std::string& url, unsigned short rows,
                   unsigned short columns) {
  std::vector<std::string> words{REDLEASE_TOOL};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> variables{"REDLEASE_URL=" + url, "TERM=xterm", "PATH=/usr/bin:/bin"};
  for (const char* kept : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"}) {
    if (const char* value = std::getenv(kept)) variables.push_back(std::string(kept) + "=" + value);
  }
  std::vector<char*> env;
  for (std::string& variable : variables) env.push_back(variable.data());
  env.push_back(nullptr);
  winsize size{};
  size.ws_row = rows;
  size.ws_col = columns;
  pid_ = ::forkpty(&master_, nullptr, nullptr, &size);
  if (pid_ < 0) throw_errno("forkpty");
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::execve(argv[0], argv.data(), env.data());
    ::_exit(99);
  }
  reader_ = std::jthread([this](const std::stop_token& over) {
    std::array<char, 4096> buffer{};
    while (!over.stop_requested()) {
      pollfd fd{master_, POLLIN, 0};
      if (::poll(&fd, 1, 50) <= 0) continue;
      const ssize_t n = ::read(master_, buffer.data(), buffer.size());
      if (n <= 0) return;  // EIO: nobody has the other end open any more
      const std::scoped_lock lock(mutex_);
      seen_.append(buffer.data(), static_cast<std::size_t>(n));
    }
  });
}

Terminal::~Terminal() {
  if (pid_ > 0) wait(Millis(0));
  reader_.request_stop();
  reader_.join();
  ::close(master_);
}

void Terminal::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

void Terminal::resize(unsigned short rows, unsigned short columns) const {
  winsize size{};
  size.ws_row = rows;
  size.ws_col = columns;
  ::ioctl(master_, TIOCSWINSZ, &size);
}

std::string Terminal::seen() const {
  const std::scoped_lock lock(mutex_);
  return seen_;
}

std::vector<std::string> Terminal::picture() const {
  const std::string all = seen();
  const auto end = all.rfind("\x1b[J");  // of the last one that is whole
  if (end == all.npos) return {};
  const auto begin = all.rfind("\x1b[H", end);
  std::vector<std::string> lines{""};
  for (std::size_t i = begin; i < end; ++i) {
    if (all[i] == '\x1b') {
      while (i < end && (all[i] < 'A' || all[i] > 'z' || all[i] == '[')) ++i;
    } else if (all[i] == '\n') {
      lines.emplace_back();
    } else if (all[i] != '\r') {
      lines.back() += all[i];
    }
  }
  return lines;
}

int Terminal::wait(Millis limit) {
  int status = 0;
  if (!becomes([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }, limit)) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status, 0);
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace v0
}  // namespace redlease
