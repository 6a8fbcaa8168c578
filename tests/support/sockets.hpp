#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace redlease {
inline namespace v0 {

class TestFd {
 public:
  TestFd() = default;
  explicit TestFd(int fd) : fd_(fd) {}
  TestFd(TestFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  TestFd& operator=(TestFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~TestFd() { close(); }
  void close();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_{-1};
};

/// A unix socket if it has a path, else a port of 127.0.0.1.
struct ServerAddress {
  std::string path;
  std::uint16_t port{};
  std::string url() const;
};

/// `what` and what errno says.
[[noreturn]] void throw_errno(const std::string& what);

/// A port below those that the kernel gives to outgoing connections: nobody takes it by chance while its server is
/// down for a restart.
std::uint16_t free_port();

TestFd bind_to(const ServerAddress&);
TestFd listen_at(const ServerAddress&);

enum class Blocking : bool { no, yes };
TestFd connect_to(const ServerAddress&, Blocking = Blocking::yes);

/// Accepts without blocking; an empty fd if nobody waits.
TestFd accept_from(const TestFd& listener);

/// All of it, or std::runtime_error; never SIGPIPE.
void send_all(const TestFd&, std::string_view bytes);

}  // namespace v0
}  // namespace redlease
