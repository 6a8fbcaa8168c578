#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct redisReader;

namespace redlease {
inline namespace v0 {

struct RawReply {
  enum class Kind { nil, status, text, integer, error, array };
  Kind kind{Kind::nil};
  long long integer{};
  std::string text;  ///< of a status, a text or an error
  std::vector<RawReply> elements;
};

/// For failure messages: `OK`, `(error) …`, `[1, nil]`.
std::string to_string(const RawReply&);

/// Bytes in, replies (or a server's commands) out.
class RawReader {
 public:
  RawReader();
  void feed(std::string_view bytes);
  /// Nothing if more bytes are needed. Throws std::runtime_error for what is not RESP.
  std::optional<RawReply> next();

 private:
  struct Deleter {
    void operator()(redisReader*) const noexcept;
  };
  std::unique_ptr<redisReader, Deleter> reader_;
};

/// The bytes of one command.
std::string raw_command(const std::vector<std::string>& argv);

}  // namespace v0
}  // namespace redlease
