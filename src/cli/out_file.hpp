#pragma once
#include <string>
#include <string_view>

namespace redlease::cli {

/// A file that is there whole or not at all: written beside its place and moved there at the end. What is there already
/// and is no regular file (/dev/full, a pipe) is written to directly. Throws Failure (no_output).
class OutFile {
 public:
  /// Opens it at once, so that a place that cannot be written to is known before any work.
  explicit OutFile(std::string path);
  ~OutFile();
  OutFile(const OutFile&) = delete;
  OutFile& operator=(const OutFile&) = delete;

  void finish(std::string_view content);

 private:
  [[noreturn]] void fail(int error) const;

  std::string path_;
  std::string beside_;  // empty: directly
  int descriptor_{-1};
};

}  // namespace redlease::cli
