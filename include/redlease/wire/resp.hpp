#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "redlease/export.hpp"

struct redisReader;

namespace redlease {
inline namespace v0 {

/// One reply of a server (RESP2).
struct Reply {
  enum class Kind : std::uint8_t { nil, integer, text, status, error, array };
  Kind kind{Kind::nil};
  long long integer{0};
  std::string text;          ///< of text, status and error; may hold any bytes
  std::vector<Reply> items;  ///< of array; the vector may be longer than the array: see elements
  std::size_t elements{0};   ///< of array: how many of items count

  bool is_error() const noexcept { return kind == Kind::error; }
  /// The first word of an error: "NOSCRIPT", "ERR". Behaviour is decided by it alone, since texts differ between
  /// servers.
  std::string_view first_word() const noexcept { return std::string_view(text).substr(0, text.find(' ')); }
};

/// Appends one command. Written here and not by hiredis' formatter, which allocates a frame for every command: the
/// callers' buffers are used again and again, so that a renewal allocates nothing.
REDLEASE_EXPORT void append_command(std::string& frame, std::span<const std::string_view> words);
inline void append_command(std::string& frame, std::initializer_list<std::string_view> words) {
  append_command(frame, std::span(words.begin(), words.size()));
}

/// Turns bytes into replies, over hiredis' reader. Keeps its memory from reply to reply. Not thread-safe.
///
/// Refuses what no honest server sends us, before memory is spent on it: more than max_elements in a reply, more than
/// max_bytes, nesting deeper than max_depth, and the types of RESP3, which is never asked for.
class REDLEASE_EXPORT ReplyReader {
 public:
  static constexpr std::size_t max_elements = 4'096, max_bytes = std::size_t{1} << 20, max_depth = 8;

  ReplyReader();
  ReplyReader(const ReplyReader&) = delete;
  ReplyReader& operator=(const ReplyReader&) = delete;
  ~ReplyReader();

  enum class State : std::uint8_t { needs_more, ready, broken };

  /// Takes bytes in, in whatever pieces they come.
  void feed(std::string_view bytes);

  /// Completes the next reply from what was fed, if there is enough. Broken stays broken.
  State next();

  /// The reply that next() completed; until next() is called again.
  const Reply& reply() const noexcept { return root_; }

  /// Nothing is left of what was fed.
  bool empty() const noexcept { return bytes_ == 0; }

  /// Why it is broken.
  const std::string& trouble() const noexcept { return trouble_; }

 private:
  friend struct ReplyBuilder;
  struct Free {
    void operator()(redisReader*) const noexcept;
  };
  std::unique_ptr<redisReader, Free> reader_;
  Reply root_;
  std::size_t elements_{0}, bytes_{0};
  std::string trouble_;
};

}  // namespace v0
}  // namespace redlease
