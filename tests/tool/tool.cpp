#include "tool/tool.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "support/sockets.hpp"

namespace redlease {
inline namespace v0 {
namespace {

std::string content(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

int opened(const std::string& file, int flags) {
  const int descriptor = ::open(file.c_str(), flags | O_CLOEXEC, 0600);
  if (descriptor < 0) throw_errno("open " + file);
  return descriptor;
}

// For the write end alone.
int pipe_without_reader() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("pipe2");
  ::close(ends[0]);
  return ends[1];
}

// Full; what is read of it is to be closed later.
int full_pipe(int& unread) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw_errno("pipe2");
  const std::string page(4096, 'x');
  while (::write(ends[1], page.data(), page.size()) > 0) {
  }
  ::fcntl(ends[1], F_SETFL, O_WRONLY);
  unread = ends[0];
  return ends[1];
}

std::vector<std::string> environment(const ToolSetup& setup) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const std::string name = text.substr(0, text.find('='));
    if (!name.starts_with("REDLEASE_") && !setup.env.contains(name)) out.push_back(text);
  }
  if (!setup.url.empty()) out.push_back("REDLEASE_URL=" + setup.url);
  for (const auto& [name, value] : setup.env) out.push_back(name + "=" + value);
  return out;
}

}  // namespace

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  out.reserve(words.size() + 1);
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

Tool::Tool(const std::vector<std::string>& arguments, const ToolSetup& setup) {
  std::ofstream(dir_.path() + "/in", std::ios::binary) << setup.input;
  const int in = opened(dir_.path() + "/in", O_RDONLY);
  const int out = setup.stuck_output    ? full_pipe(unread_)
                  : setup.closed_output ? pipe_without_reader()
                                        : opened(setup.output_file.value_or(dir_.path() + "/out"), O_WRONLY | O_CREAT);
  const int err = opened(dir_.path() + "/err", O_WRONLY | O_CREAT | O_APPEND);
  std::vector<std::string> words{REDLEASE_TOOL}, variables = environment(setup);
  words.insert(words.end(), arguments.begin(), arguments.end());
  const auto argv = pointers(words), env = pointers(variables);

  pid_ = ::fork();
  if (pid_ < 0) throw_errno("fork");
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::signal(SIGPIPE, SIG_DFL);
    ::dup2(in, 0);
    ::dup2(out, 1);
    ::dup2(err, 2);
    if (setup.before_exec) setup.before_exec();
    ::execve(argv[0], argv.data(), env.data());
    ::_exit(99);
  }
  for (const int descriptor : {in, out, err}) ::close(descriptor);
}

Tool::~Tool() {
  if (unread_ >= 0) ::close(unread_);
  if (status_) return;
  ::kill(pid_, SIGKILL);
  reap(0);
}

bool Tool::reap(int options) {
  if (status_) return true;
  int status = 0;
  pid_t got = 0;
  do got = ::waitpid(pid_, &status, options);
  while (got < 0 && errno == EINTR);
  if (got == pid_) status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return status_.has_value();
}

void Tool::signal(int number) const {
  if (!status_) ::kill(pid_, number);
}

void Tool::unstick() const {
  std::string page(4096, 0);
  while (::read(unread_, page.data(), page.size()) > 0) {
  }
}

std::string Tool::out() const { return content(dir_.path() + "/out"); }
std::string Tool::err() const { return content(dir_.path() + "/err"); }

ToolResult Tool::wait(Millis limit) {
  if (!becomes([&] { return reap(WNOHANG); }, limit)) {
    ::kill(pid_, SIGKILL);
    reap(0);
  }
  return {*status_, out(), err()};
}

ToolResult run_tool(const std::vector<std::string>& arguments, const ToolSetup& setup, Millis limit) {
  return Tool(arguments, setup).wait(limit);
}

}  // namespace v0
}  // namespace redlease
