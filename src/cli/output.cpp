#include "cli/output.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <system_error>

#include "cli/exit_code.hpp"
#include "cli/stop_on_signal.hpp"

namespace redlease::cli {

std::size_t character_size(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first >= ' ' && first != 0x7f ? 1 : 0;
  const std::size_t size = first >= 0xf0 && first < 0xf5 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (size == 0 || first >= 0xf5 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool surrogate = first == 0xed && byte(1) >= 0xa0;
  const bool too_high = first == 0xf4 && byte(1) >= 0x90;
  const bool control = first == 0xc2 && byte(1) < 0xa0;
  return overlong || surrogate || too_high || control ? 0 : size;
}

namespace {

constexpr std::string_view speaker = "redlease: ";

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

// Whether a write of up to PIPE_BUF bytes would not stand still: a stopped reader must not keep us from obeying
// signals.
bool takes_some(int descriptor, int limit_ms) noexcept {
  pollfd of{descriptor, POLLOUT, 0};
  return ::poll(&of, 1, limit_ms) > 0;
}

winsize size_of(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0) return {};
  return size;
}

}  // namespace

void print(std::string_view text) {
  while (!text.empty()) {
    if (!takes_some(STDOUT_FILENO, 100)) {
      if (const int signal = StopOnSignal::last()) throw interrupted(signal, "while nobody read standard output");
      continue;
    }
    const ssize_t n = ::write(STDOUT_FILENO, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (n >= 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
    } else if (const int error = errno; error != EINTR) {
      throw Failure(Exit::no_output, error == EPIPE ? "no_reader" : "no_output",
                    fmt::format("could not write to standard output: {}", std::generic_category().message(error)));
    }
  }
}

std::string_view without_speaker(std::string_view text) noexcept {
  return text.starts_with(speaker) ? text.substr(speaker.size()) : text;
}

void print_error(std::string_view text) {
  std::string lines(speaker);
  for (;;) {
    const auto end = text.find('\n');
    lines += printable(text.substr(0, end)) + "\n";
    if (end == text.npos) return put_error(lines);
    text.remove_prefix(end + 1);
  }
}

void put_error(std::string_view text) noexcept {
  while (!text.empty() && takes_some(STDERR_FILENO, 1'000)) {
    const ssize_t n = ::write(STDERR_FILENO, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (n < 0 && errno != EINTR) return;
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    if (const std::size_t size = character_size(text); size > 0) {
      out += text.substr(0, size);
      text.remove_prefix(size);
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
    }
  }
  return out;
}

Screen::Screen(int descriptor) : terminal(::isatty(descriptor) == 1), descriptor_(descriptor) {
  const char* term = std::getenv("TERM");
  movable = terminal && term != nullptr && std::string_view(term) != "dumb";
  colours = movable && !is_set("NO_COLOR");
}

std::string Screen::tinted(Tint tint, std::string_view text) const {
  if (!colours || tint == Tint::plain) return std::string(text);
  const int code = tint == Tint::good ? 32 : tint == Tint::bad ? 31 : tint == Tint::warn ? 33 : 2;
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

int Screen::columns() const {
  const int n = size_of(descriptor_).ws_col;
  return n > 0 ? n : 80;
}

int Screen::rows() const {
  const int n = size_of(descriptor_).ws_row;
  return n > 0 ? n : 24;
}

}  // namespace redlease::cli
