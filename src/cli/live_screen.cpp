#include "cli/live_screen.hpp"

#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace redlease::cli {
namespace {

constexpr std::string_view enter = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J", leave = "\x1b[?25h\x1b[?1049l";

// Nothing helps where this fails: the terminal has gone.
void say(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data(), text.size());
    if (n < 0 && errno != EINTR) return;
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
}

// In a signal handler: only write and raise.
void suspend(int) {
  const int error = errno;
  say(leave);
  ::raise(SIGSTOP);
  say(enter);
  errno = error;
}

}  // namespace

LiveScreen::LiveScreen() {
  struct sigaction action {};
  action.sa_handler = suspend;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTSTP, &action, &before_);
  say(enter);
}

LiveScreen::~LiveScreen() {
  ::sigaction(SIGTSTP, &before_, nullptr);
  say(leave);
}

void LiveScreen::draw(const std::vector<std::string>& lines) {
  std::string frame = "\x1b[H";
  for (std::size_t i = 0; i < lines.size(); ++i) frame += (i > 0 ? "\r\n" : "") + lines[i] + "\x1b[K";
  print(frame + "\x1b[J");
}

}  // namespace redlease::cli
