#include "cli/terminal.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace redlease::cli {

Terminal::Terminal() : descriptor_(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)) {}

Terminal::~Terminal() {
  take_back();
  if (exists()) ::close(descriptor_);
}

bool Terminal::ours() const { return belongs_to(::getpgrp()); }

bool Terminal::belongs_to(pid_t group) const { return exists() && ::tcgetpgrp(descriptor_) == group; }

bool Terminal::for_us_alone() const { return ours() && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1; }

void Terminal::give(pid_t group) {
  ::tcsetpgrp(descriptor_, group);
  given_ = true;
}

void Terminal::take_back() {
  if (given_) ::tcsetpgrp(descriptor_, ::getpgrp());
  given_ = false;
}

}  // namespace redlease::cli
