#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "redlease/export.hpp"
#include "redlease/options.hpp"

namespace redlease {
inline namespace v0 {

/// One server, and how to introduce oneself to it.
struct Endpoint {
  enum class Kind : std::uint8_t { tcp, tls, unix_socket };
  Kind kind{Kind::tcp};
  std::string host;  ///< tcp, tls: a name, or an IPv4 or IPv6 literal without brackets
  std::uint16_t port{6379};
  std::string path;  ///< unix_socket
  std::string user;  ///< empty: the default user
  std::optional<std::string> password;
  unsigned db{0};
  std::string client_name;  ///< CLIENT SETNAME; empty: none
  TlsOptions tls;
  std::string display;  ///< for people: "redis://host:6379/0", never with user or password
};

/// Reads a redis://, rediss:// or unix:// URL. Throws std::invalid_argument saying what is wrong, without the password.
REDLEASE_EXPORT Endpoint parse_endpoint(std::string_view url);

}  // namespace v0
}  // namespace redlease
