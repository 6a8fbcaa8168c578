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

namespace {

// Without what was tried: `inspect "key": `. A line of a terminal is short.
std::string_view cause(const Error& error) {
  const std::string_view text = error.detail;
  const auto begin = text.find("\": ");
  return begin == text.npos || !text.starts_with("inspect ") ? text : text.substr(begin + 3);
}

}  // namespace

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
    if (info.held_for) line += fmt::format(" for {}", show(*info.held_for));
    line +=
        info.remaining ? fmt::format(", for another {} unless renewed", show(*info.remaining)) : ", without an expiry";
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
    auto pause = 1'000ms;
    for (int look = 1;; ++look) {
      redlease::nap({deadline_in(pause), over});
      if (over.stop_requested()) return;
      tell(!screen_.terminal && look == 1);
      if (!screen_.terminal) pause = look == 1 ? 4'000ms : 60'000ms;
    }
  });
}

Progress::~Progress() {
  if (!teller_.joinable()) return;
  teller_.request_stop();
  teller_.join();
  if (drawn_) put_error("\r\x1b[K");
}

void Progress::tell(bool only_trouble) {
  const auto info = client_.inspect(key_);
  if (only_trouble && info.has_value()) return;
  std::string line =
      info.has_value()
          ? fmt::format("waiting for {}: {}", printable(key_.str()), holder_line(info.value(), this_process()))
          : fmt::format("waiting for {}; {}", printable(key_.str()), printable(cause(info.error())));
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
