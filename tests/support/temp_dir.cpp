#include "support/temp_dir.hpp"

#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "support/sockets.hpp"

namespace redlease {
inline namespace v0 {

TempDir::TempDir() {
  std::string base = std::filesystem::temp_directory_path();
  if (base.size() > 60) base = "/tmp";  // a unix socket's path has room for 107 bytes
  path_ = base + "/redlease-XXXXXX";
  if (::mkdtemp(path_.data()) == nullptr) throw_errno("mkdtemp " + path_);
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::ptrdiff_t entries(const char* directory) {
  using Entries = std::filesystem::directory_iterator;
  return std::distance(Entries(directory), Entries());
}

}  // namespace v0
}  // namespace redlease
