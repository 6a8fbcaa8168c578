#include "support/redis_server.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "support/raw_client.hpp"
#include "support/sleepless.hpp"

namespace redlease {
inline namespace v0 {
namespace {

constexpr Millis patience{20'000};

std::vector<std::string> server_command() {
  const char* named = std::getenv("REDLEASE_TEST_SERVER");
  std::istringstream words(named != nullptr ? named : "redis-server");
  std::vector<std::string> result;
  for (std::string word; words >> word;) result.push_back(word);
  if (result.empty()) throw std::runtime_error("REDLEASE_TEST_SERVER is set but names no server");
  return result;
}

// Runs between fork and exec, where only async-signal-safe calls are allowed.
[[noreturn]] void become_server(char* const* argv, int log, int failure, pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::execvp(argv[0], argv);
  const int error = errno;
  // The parent reads end-of-file, if this write fails too, and then finds no server.
  [[maybe_unused]] const ssize_t written = ::write(failure, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

RedisServer::RedisServer(std::vector<std::string> config) : config_(std::move(config)) {
  try {
    for (int attempt = 1;; ++attempt) {
      port_ = free_port();
      write_config();
      try {
        launch(Await::loaded);
        return;
      } catch (const std::runtime_error&) {
        const bool collision = log().find("Address already in use") != std::string::npos;
        if (!collision || attempt == 5) throw;
        std::filesystem::remove(dir() + "/server.log");
      }
    }
  } catch (...) {
    kill9();
    throw;
  }
}

RedisServer::~RedisServer() {
  if (pid_ > 0) signal_all(SIGCONT);
  kill9();
}

void RedisServer::write_config() const {
  std::ofstream out(dir() + "/redis.conf");
  out << "bind 127.0.0.1\nport " << port_ << "\nunixsocket " << socket_path() << "\ndir " << dir()
      << "\nsave \"\"\nappendonly no\nshutdown-on-sigterm save now force\ndaemonize no\nlogfile \"\"\n";
  for (const std::string& line : config_) out << line << '\n';
  if (!out.flush()) throw std::runtime_error("cannot write " + dir() + "/redis.conf");
}

void RedisServer::launch(Await await) {
  spawn();
  await_answer(await);
}

void RedisServer::spawn() {
  std::vector<std::string> words = server_command();
  words.push_back(dir() + "/redis.conf");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  const TestFd log(::open((dir() + "/server.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!log) throw_errno("open " + dir() + "/server.log");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("pipe2");
  const TestFd failure(ends[0]);
  TestFd failure_in_child(ends[1]);

  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw_errno("fork");
  if (pid_ == 0) become_server(argv.data(), log.get(), failure_in_child.get(), parent);
  failure_in_child.close();
  int error = 0;
  ssize_t told = 0;
  do told = ::read(failure.get(), &error, sizeof error);
  while (told < 0 && errno == EINTR);
  if (told > 0) {
    await_exit(patience);
    errno = error;
    throw_errno("cannot run the test server `" + words.front() +
                "`: install redis-server or name another in REDLEASE_TEST_SERVER");
  }
}

void RedisServer::await_answer(Await await) {
  std::string last;
  const bool answered = eventually(
      [&] {
        if (await_exit(Millis(0))) return true;
        try {
          // Whatever else it answers shows that it is up: that it wants a password, or is a stale replica.
          last = to_string(RawClient(unix_socket()).command({"PING"}));
          return await == Await::answer || !last.starts_with("(error) LOADING");
        } catch (const std::runtime_error& e) {
          last = e.what();
          return false;
        }
      },
      patience);
  if (answered && pid_ > 0) return;
  const std::string text = log();
  throw std::runtime_error(
      (answered ? std::string("the test server ended while starting") : "the test server did not come up: " + last) +
      "; its log ends with\n" + text.substr(text.size() - std::min<std::size_t>(text.size(), 2000)));
}

std::string RedisServer::log() const {
  std::ifstream in(dir() + "/server.log");
  return {std::istreambuf_iterator<char>(in), {}};
}

void RedisServer::signal_all(int signal) const {
  if (pid_ <= 0) throw std::logic_error("the test server is down");
  ::kill(-pid_, signal);  // the group, for the children with which it saves
}

int RedisServer::await_change(int options, Millis limit) {
  int status = 0;
  eventually(
      [&] {
        const pid_t changed = ::waitpid(pid_, &status, WNOHANG | options);
        if (changed < 0 && errno != EINTR) throw_errno("waitpid for the test server");
        if (changed <= 0) status = 0;
        if (changed > 0 && (WIFEXITED(status) || WIFSIGNALED(status))) pid_ = -1;
        return changed > 0;
      },
      limit);
  return status;
}

bool RedisServer::await_exit(Millis limit) {
  if (pid_ > 0) await_change(0, limit);
  return pid_ < 0;
}

void RedisServer::stop() {
  signal_all(SIGSTOP);
  if (!WIFSTOPPED(await_change(WUNTRACED, patience))) throw std::runtime_error("the test server did not stop");
}

void RedisServer::cont() {
  signal_all(SIGCONT);
  if (!WIFCONTINUED(await_change(WCONTINUED, patience))) throw std::runtime_error("the test server did not go on");
}

void RedisServer::kill9() {
  if (pid_ < 0) return;
  signal_all(SIGKILL);
  if (!await_exit(patience)) throw std::runtime_error("the test server survived SIGKILL");
}

void RedisServer::terminate() {
  if (pid_ < 0) return;
  signal_all(SIGTERM);
  if (!await_exit(patience)) throw std::runtime_error("the test server did not heed SIGTERM");
}

void RedisServer::restart(bool keep_data, Await await) {
  if (keep_data) {
    terminate();
  } else {
    kill9();
    std::filesystem::remove(dir() + "/dump.rdb");
    std::filesystem::remove_all(dir() + "/appendonlydir");
  }
  launch(await);
}

}  // namespace v0
}  // namespace redlease
