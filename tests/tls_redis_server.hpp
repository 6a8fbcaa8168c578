#pragma once
// A redis-server that speaks TLS, with a certificate for 127.0.0.1 made on the spot.
#include <cstdint>
#include <string>

#include "certificates.hpp"
#include "redlease/options.hpp"
#include "support/redis_server.hpp"
#include "support/sockets.hpp"
#include "support/temp_dir.hpp"

namespace redlease::testing_support {

class TlsRedisServer {
 public:
  // For a client that trusts it.
  ClientOptions options() const {
    ClientOptions options;
    options.tls.ca_file = identity_.cert_file;
    return options;
  }
  static std::string url(std::uint16_t port) { return "rediss://127.0.0.1:" + std::to_string(port); }
  std::string url() const { return url(port_); }
  std::uint16_t port() const { return port_; }
  ServerAddress tcp() const { return server_.tcp(); }  // the same server, without TLS

 private:
  const TempDir dir_;
  const Identity identity_{dir_.path() + "/server", {.name = "localhost", .san = "IP:127.0.0.1"}};
  const std::uint16_t port_{free_port()};
  const RedisServer server_{{"tls-port " + std::to_string(port_), "tls-cert-file " + identity_.cert_file,
                             "tls-key-file " + identity_.key_file, "tls-ca-cert-file " + identity_.cert_file,
                             "tls-auth-clients no"}};
};

}  // namespace redlease::testing_support
