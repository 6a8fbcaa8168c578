#pragma once
#include <cstddef>
#include <string>

namespace redlease {
inline namespace v0 {

/// A fresh directory with a path short enough for a unix socket in it; removed with its content.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// How much is in a directory, "/proc/self/fd" say.
std::ptrdiff_t entries(const char* directory);

}  // namespace v0
}  // namespace redlease
