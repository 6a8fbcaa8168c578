#include "support/sockets.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <system_error>

namespace redlease {
inline namespace v0 {
namespace {

struct SockAddr {
  sockaddr_storage storage{};
  socklen_t size{};
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

SockAddr sock_addr(const ServerAddress& address) {
  SockAddr result;
  if (address.path.empty()) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(address.port);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::memcpy(&result.storage, &in, sizeof in);
    result.size = sizeof in;
  } else {
    sockaddr_un un{};
    if (address.path.size() >= sizeof un.sun_path) {
      throw std::runtime_error("too long for a unix socket: " + address.path);
    }
    un.sun_family = AF_UNIX;
    address.path.copy(un.sun_path, address.path.size());
    std::memcpy(&result.storage, &un, sizeof un);
    result.size = sizeof un;
  }
  return result;
}

TestFd make_socket(const SockAddr& address, int flags) {
  TestFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  if (!fd) throw_errno("socket");
  return fd;
}

void set_no_delay(const TestFd& fd) {
  const int on = 1;
  // Fails on a unix socket, which never delays.
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

void TestFd::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

std::string ServerAddress::url() const {
  return path.empty() ? "redis://127.0.0.1:" + std::to_string(port) : "unix://" + path;
}

void throw_errno(const std::string& what) { throw std::system_error(errno, std::generic_category(), what); }

std::uint16_t free_port() {
  std::random_device random;
  std::uniform_int_distribution<int> ports(20000, 32000);
  for (int tries = 0; tries < 1000; ++tries) {
    const ServerAddress address{{}, static_cast<std::uint16_t>(ports(random))};
    const SockAddr where = sock_addr(address);
    const TestFd fd = make_socket(where, 0);
    if (::bind(fd.get(), where.get(), where.size) == 0) return address.port;
  }
  throw std::runtime_error("no free port of 127.0.0.1 found between 20000 and 32000");
}

TestFd bind_to(const ServerAddress& address) {
  const SockAddr where = sock_addr(address);
  TestFd fd = make_socket(where, SOCK_NONBLOCK);
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd.get(), where.get(), where.size) != 0) throw_errno("bind " + address.url());
  return fd;
}

TestFd listen_at(const ServerAddress& address) {
  TestFd fd = bind_to(address);
  if (::listen(fd.get(), SOMAXCONN) != 0) throw_errno("listen " + address.url());
  return fd;
}

TestFd connect_to(const ServerAddress& address, Blocking blocking) {
  const SockAddr where = sock_addr(address);
  TestFd fd = make_socket(where, blocking == Blocking::no ? SOCK_NONBLOCK : 0);
  set_no_delay(fd);
  if (::connect(fd.get(), where.get(), where.size) != 0 && errno != EINPROGRESS) {
    throw_errno("connect " + address.url());
  }
  return fd;
}

TestFd accept_from(const TestFd& listener) {
  TestFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd) set_no_delay(fd);
  return fd;
}

void send_all(const TestFd& fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno("send");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace v0
}  // namespace redlease
