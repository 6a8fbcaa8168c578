#include "support/monitor.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <stdexcept>

namespace redlease {
inline namespace v0 {
namespace {

constexpr std::string_view marker_prefix = "monitor-sync-";

char unescaped(char c) {
  switch (c) {
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'a': return '\a';
    case 'b': return '\b';
    default: return c;
  }
}

std::vector<std::string> parse_arguments(std::string_view text) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '"') continue;
    std::string argument;
    for (++i; i < text.size() && text[i] != '"'; ++i) {
      if (text[i] != '\\') {
        argument += text[i];
      } else if (text.substr(i + 1, 1) == "x") {
        argument += static_cast<char>(std::stoi(std::string(text.substr(i + 2, 2)), nullptr, 16));
        i += 3;
      } else {
        argument += unescaped(text[++i]);
      }
    }
    result.push_back(std::move(argument));
  }
  return result;
}

RawClient logged_in(const ServerAddress& address, const std::string& password) {
  RawClient client(address);
  if (!password.empty()) client.auth(password);
  return client;
}

}  // namespace

std::string MonitorLine::name() const {
  std::string result = argv.empty() ? "" : argv.front();
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return result;
}

// 1700000000.123456 [0 127.0.0.1:50000] "SET" "key" "value"
MonitorLine parse_monitor_line(std::string line) {
  const std::size_t open = line.find('[');
  const std::size_t space = line.find(' ', open);
  const std::size_t close = line.find("] \"", space);
  if (close == std::string::npos) throw std::runtime_error("not a line of MONITOR: " + line);
  MonitorLine result;
  result.db = std::stoi(line.substr(open + 1, space - open - 1));
  result.client = line.substr(space + 1, close - space - 1);
  result.argv = parse_arguments(std::string_view(line).substr(close + 2));
  result.line = std::move(line);
  return result;
}

Monitor::Monitor(const ServerAddress& address, const std::string& password)
    : watcher_(logged_in(address, password)), marker_(logged_in(address, password)) {
  const RawReply reply = watcher_.command({"MONITOR"});
  if (reply.text != "OK") throw std::runtime_error("MONITOR answered " + to_string(reply));
  thread_ = std::jthread([this] { collect(); });
}

Monitor::~Monitor() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  watcher_.shut_down();
}

void Monitor::collect() {
  try {
    while (true) {
      RawReply reply = watcher_.receive(std::chrono::hours(1));
      MonitorLine line = parse_monitor_line(std::move(reply.text));
      const std::lock_guard lock(mutex_);
      if (line.argv.size() != 2 || !line.argv[1].starts_with(marker_prefix)) {
        lines_.push_back(std::move(line));
      } else if (line.argv[1] == awaited_) {
        awaited_.clear();
        changed_.notify_all();
      }
    }
  } catch (const std::exception&) {
    const std::lock_guard lock(mutex_);
    if (!stopping_) failure_ = std::current_exception();
    changed_.notify_all();
  }
}

void Monitor::sync() {
  // Several monitors may watch one server, from several processes.
  static std::atomic<int> markers{0};
  const std::string marker = std::string(marker_prefix) + std::to_string(::getpid()) + "-" + std::to_string(++markers);
  {
    const std::lock_guard lock(mutex_);
    awaited_ = marker;
  }
  const RawReply reply = marker_.command({"ECHO", marker});
  if (reply.text != marker) throw std::runtime_error("ECHO answered " + to_string(reply));
  std::unique_lock lock(mutex_);
  const bool seen =
      changed_.wait_for(lock, std::chrono::seconds(5), [&] { return awaited_.empty() || failure_ != nullptr; });
  if (failure_) std::rethrow_exception(failure_);
  if (!seen) throw std::runtime_error("MONITOR did not show " + marker + " within 5 s");
}

std::vector<MonitorLine> Monitor::lines() {
  sync();
  const std::lock_guard lock(mutex_);
  return lines_;
}

void Monitor::clear() {
  sync();
  const std::lock_guard lock(mutex_);
  lines_.clear();
}

}  // namespace v0
}  // namespace redlease
