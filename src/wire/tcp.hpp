#pragma once
// Sockets, TCP and unix alike.
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#include "fork.hpp"
#include "redlease/wire/transport.hpp"

namespace redlease {
inline namespace v0 {

// Whether a call is past its limits.
IoStatus over(const Limits&) noexcept;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size{0};
};

// Of a unix socket. Requires a path that parse_endpoint let through.
SocketAddress unix_address(const std::string& path);

// "127.0.0.1", "::1".
std::string numeric_host(const SocketAddress&);

struct Dialled {
  OwnedFd fd;  // in blocking mode
  IoStatus status{IoStatus::ok};
  std::error_code error{};
};
Dialled dial(const SocketAddress&, const Limits&) noexcept;

class SocketTransport final : public Transport {
 public:
  explicit SocketTransport(OwnedFd fd) noexcept : fd_(std::move(fd)) {}
  Io write(std::string_view bytes, const Limits&) noexcept override;
  Io read(std::span<char> into, const Limits&) noexcept override;
  bool quiet() noexcept override;
  int descriptor() const noexcept override { return fd_.get(); }

  // What is there already; timed_out if nothing is.
  Io read_now(std::span<char> into) noexcept;

 private:
  bool bound_recv(LeaseClock::duration left) noexcept;

  OwnedFd fd_;
  LeaseClock::duration recv_limit_{};  // the SO_RCVTIMEO in force; 0: none was set yet
};

}  // namespace v0
}  // namespace redlease
