#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "cli/duration.hpp"
#include "nap.hpp"

namespace redlease::cli {

using namespace std::chrono_literals;

std::string this_process() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {"unknown-host"};
  std::string text(host.data());
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) <= ' '; }, '_');
  return fmt::format("{}:{}", text, ::getpid());
}

std::string holder_line(const LeaseInfo& info, std::string_view waiter) {
  std::string line;
  if (!info.held) {
    line = "free";
  } else {
    line = info.holder.empty() ? "held by another" : "held by " + printable(info.holder);
    if (!info.label.empty()) line += fmt::format(" ({})", printable(info.label));
    if (info.held_for) line += fmt::format(" since {}", show(*info.held_for));
    line +=
        info.remaining ? fmt::format(", unless renewed for another {}", show(*info.remaining)) : ", without an expiry";
  }
  const auto ours = [&](const std::string& who) { return who == waiter || who.starts_with(std::string(waiter) + " "); };
  const auto place = std::ranges::find_if(info.queue, ours);
  if (place != info.queue.end()) {
    line += fmt::format("; place {} of {} in the queue", place - info.queue.begin() + 1, info.waiters);
  } else if (info.waiters > 0) {
    line += fmt::format("; {} in the queue", info.waiters);
  }
  return line;
}

Progress::Progress(const Context& context, Client& client, const LeaseKey& key)
    : screen_(STDERR_FILENO), client_(client), key_(key) {
  if (context.quiet()) return;
  teller_ = std::jthread([this](const std::stop_token& over) {
    auto pause = screen_.terminal ? 1'000ms : 5'000ms;
    for (;;) {
      redlease::nap({deadline_in(pause), over});
      if (over.stop_requested()) return;
      tell();
      if (!screen_.terminal) pause = 60'000ms;
    }
  });
}

Progress::~Progress() {
  if (!teller_.joinable()) return;
  teller_.request_stop();
  teller_.join();
  if (drawn_) put_error("\r\x1b[K");
}

void Progress::tell() {
  const auto info = client_.inspect(key_);
  std::string line = info.has_value() ? fmt::format("waiting for {}: {}", printable(key_.str()),
                                                    holder_line(info.value(), this_process()))
                                      : "waiting; the server does not tell for whom: " + info.error().detail;
  if (!screen_.terminal) return print_error(line);
  // Cut at the edge: a line that wraps could not be drawn over. By bytes, which may cut one character too many.
  if (const auto width = static_cast<std::size_t>(screen_.columns() - 1); line.size() > width) {
    line.resize(width);
    while (!line.empty() && printable(line) != line) line.pop_back();
  }
  put_error("\r\x1b[K" + line);
  drawn_ = true;
}

}  // namespace redlease::cli
