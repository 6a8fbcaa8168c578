#include "cli/out_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/exit_code.hpp"

namespace redlease::cli {

OutFile::OutFile(std::string path) : path_(std::move(path)) {
  // A file that may not grow further (ulimit -f) is an error of write(), told as such.
  std::signal(SIGXFSZ, SIG_IGN);
  std::error_code ignored;
  // Not over the link itself, wherever it leads.
  if (const auto real = std::filesystem::canonical(path_, ignored); !ignored) {
    path_ = real;
  } else if (const auto target = std::filesystem::read_symlink(path_, ignored); !ignored) {
    path_ = std::filesystem::path(path_).parent_path() / target;
  }
  struct stat there {};
  const bool exists = ::stat(path_.c_str(), &there) == 0;
  if (exists && !S_ISREG(there.st_mode)) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe that nobody reads is an error
    if (descriptor_ >= 0) ::fcntl(descriptor_, F_SETFL, O_WRONLY);
  } else {
    beside_ = path_ + ".XXXXXX";
    descriptor_ = ::mkostemp(beside_.data(), O_CLOEXEC);
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (descriptor_ < 0) {
      beside_.clear();
    } else {
      ::fchmod(descriptor_, exists ? there.st_mode & 0777 : 0666 & ~mask);
    }
  }
  if (descriptor_ < 0) fail(errno);
}

OutFile::~OutFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!beside_.empty()) ::unlink(beside_.c_str());
}

void OutFile::finish(std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(descriptor_, content.data(), content.size());
    if (n < 0 && errno != EINTR) fail(errno);
    if (n > 0) content.remove_prefix(static_cast<std::size_t>(n));
  }
  // Some file systems tell only now that there was no room.
  if (!beside_.empty() && ::fsync(descriptor_) != 0) fail(errno);
  if (::close(std::exchange(descriptor_, -1)) != 0) fail(errno);
  if (!beside_.empty() && ::rename(beside_.c_str(), path_.c_str()) != 0) fail(errno);
  beside_.clear();
}

void OutFile::fail(int error) const {
  throw Failure(Exit::no_output, "no_output",
                fmt::format("could not write {}: {}{}", path_, std::generic_category().message(error),
                            beside_.empty() ? "" : "; nothing was left there, and what was there before still is"));
}

}  // namespace redlease::cli
