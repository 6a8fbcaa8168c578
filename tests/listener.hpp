#pragma once
// Listening sockets of this process, whose backlog takes connections without a thread.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "redlease/wire/transport.hpp"
#include "support/sleepless.hpp"
#include "support/temp_dir.hpp"
#include "wire/tcp.hpp"

namespace redlease {
inline namespace v0 {

inline SocketAddress ip_address(const std::string& host, std::uint16_t port) {
  SocketAddress address;
  auto& v4 = reinterpret_cast<sockaddr_in&>(address.storage);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address.storage);
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    address.size = sizeof v4;
  } else if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    address.size = sizeof v6;
  }
  return address;
}

class Listener {
 public:
  explicit Listener(const SocketAddress& at = ip_address("127.0.0.1", 0), int backlog = 64) : address_(at) {
    fd_ = OwnedFd(::socket(at.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    auto* any = reinterpret_cast<sockaddr*>(&address_.storage);
    if (::bind(fd_.get(), any, address_.size) != 0 || ::listen(fd_.get(), backlog) != 0) {
      throw std::system_error(errno, std::system_category(), "listen");
    }
    socklen_t size = sizeof address_.storage;
    ::getsockname(fd_.get(), any, &size);
  }
  const SocketAddress& address() const { return address_; }
  std::uint16_t port() const { return ntohs(reinterpret_cast<const sockaddr_in&>(address_.storage).sin_port); }
  std::string url() const { return "redis://127.0.0.1:" + std::to_string(port()); }
  OwnedFd accept() const { return OwnedFd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  int fd() const { return fd_.get(); }

 private:
  SocketAddress address_;
  OwnedFd fd_;
};

// Listens, but its backlog is full: the kernel answers no further attempt.
class BlackHole {
 public:
  explicit BlackHole(const SocketAddress& at = ip_address("127.0.0.1", 0)) : listener_(at, 0) {
    for (int i = 0; i < 4; ++i) {
      const auto& to = listener_.address();
      OwnedFd fd(::socket(to.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      (void)::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.size);
      fillers_.push_back(std::move(fd));
    }
  }
  const Listener& listener() const { return listener_; }

 private:
  Listener listener_;
  std::vector<OwnedFd> fillers_;
};

// A port on which nobody listens, held by a bound socket so that nobody begins to.
class ClosedPort {
 public:
  explicit ClosedPort(const std::string& host = "127.0.0.1") : address_(ip_address(host, 0)) {
    fd_ = OwnedFd(::socket(address_.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    auto* any = reinterpret_cast<sockaddr*>(&address_.storage);
    socklen_t size = sizeof address_.storage;
    if (::bind(fd_.get(), any, address_.size) != 0 || ::getsockname(fd_.get(), any, &size) != 0) {
      throw std::system_error(errno, std::system_category(), "bind");
    }
  }
  const SocketAddress& address() const { return address_; }
  std::string url() const {
    return "redis://127.0.0.1:" +
           std::to_string(ntohs(reinterpret_cast<const sockaddr_in&>(address_.storage).sin_port));
  }

 private:
  SocketAddress address_;
  OwnedFd fd_;
};

// A signal every two milliseconds, whose handler lets no call be restarted.
class SignalStorm {
 public:
  SignalStorm() {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &action, &before_);
    const itimerval often{{0, 2'000}, {0, 2'000}};
    ::setitimer(ITIMER_REAL, &often, nullptr);
  }
  SignalStorm(const SignalStorm&) = delete;
  SignalStorm& operator=(const SignalStorm&) = delete;
  ~SignalStorm() {
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  struct sigaction before_ {};
};

inline Limits within(Millis limit, std::stop_token stop = {}) { return {deadline_in(limit), std::move(stop)}; }

// Never shorter than `least`; at most `most` in one of three runs, since a busy machine only ever makes things longer.
inline void expect_takes(Millis least, Millis most, const std::function<void()>& call) {
  Millis best = forever;
  for (int run = 0; run < 3 && best > most; ++run) {
    const Stopwatch watch;
    call();
    const Millis took = watch.elapsed_ms();
    EXPECT_GE(took, least);
    best = std::min(best, took);
  }
  EXPECT_LE(best, most);
}

inline std::string text(const Io& io) {
  return std::to_string(static_cast<int>(io.status)) + " after " + std::to_string(io.bytes) + ": " + io.error.message();
}

}  // namespace v0
}  // namespace redlease
