#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redlease/clock.hpp"
#include "support/raw_reply.hpp"
#include "support/sockets.hpp"

namespace redlease {
inline namespace v0 {

/// A plain client, for the server's own truth. Throws std::runtime_error when it cannot connect, when the connection
/// ends and when a reply does not come within 5 s. Not thread-safe.
class RawClient {
 public:
  explicit RawClient(const ServerAddress&);

  /// An error reply is a reply: it is returned, not thrown.
  RawReply command(const std::vector<std::string>& argv);
  void send(const std::vector<std::string>& argv);
  RawReply receive(Millis limit = Millis(5000));

  // These throw for an error reply.
  void auth(const std::string& password);
  void auth(const std::string& user, const std::string& password);
  void set(const std::string& key, const std::string& value);
  std::optional<std::string> get(const std::string& key);
  long long pttl(const std::string& key);  ///< -1: never expires, -2: no such key
  bool exists(const std::string& key);
  bool del(const std::string& key);
  void flushall();
  void config_set(const std::string& name, const std::string& value);
  std::vector<std::string> keys(const std::string& pattern = "*");  ///< sorted
  std::string info(const std::string& field);                       ///< one line of INFO

  /// Makes the receive of another thread end as if the server had closed.
  void shut_down();

 private:
  RawReply expect(RawReply::Kind, const std::vector<std::string>& argv);
  TestFd fd_;
  RawReader reader_;
};

}  // namespace v0
}  // namespace redlease
