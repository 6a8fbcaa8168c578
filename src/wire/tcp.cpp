#include "wire/tcp.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace redlease {
inline namespace v0 {
namespace {

using std::chrono::duration_cast;
using std::chrono::seconds;
using Duration = LeaseClock::duration;

constexpr Duration stop_slice = Millis(20);  // how late a stop may be seen
constexpr Duration longest_wait = std::chrono::hours(1);

std::error_code system_error(int number) { return {number, std::system_category()}; }

Duration left_until(Deadline deadline) noexcept {
  const Deadline now = LeaseClock::now();
  return deadline <= now ? Duration::zero() : deadline - now;
}

// Looks once even if the limits are past already: what is there is worth more than the news that time is up.
// failed: errno says how.
IoStatus wait_ready(int fd, short events, const Limits& limits) noexcept {
  const bool stoppable = limits.stop.stop_possible();
  for (;;) {
    const bool stopped = stoppable && limits.stop.stop_requested();
    const Duration left = stopped ? Duration::zero() : left_until(limits.deadline);
    const Duration wait = std::min(left, stoppable ? stop_slice : longest_wait);
    const auto whole = duration_cast<seconds>(wait);
    const timespec timeout{whole.count(), (wait - whole).count()};
    pollfd poll{fd, events, 0};
    const int ready = ::ppoll(&poll, 1, &timeout, nullptr);
    if (ready > 0) return IoStatus::ok;
    if (ready < 0) {
      if (errno == EINTR) continue;
      return IoStatus::failed;
    }
    if (stopped) return IoStatus::cancelled;
    if (left == Duration::zero()) return IoStatus::timed_out;
  }
}

Io ended(std::size_t bytes, IoStatus status) noexcept {
  return {bytes, status, status == IoStatus::failed ? system_error(errno) : std::error_code{}};
}

Io received(ssize_t count) noexcept {
  if (count < 0) return ended(0, IoStatus::failed);
  if (count == 0) return ended(0, IoStatus::closed);
  return ended(static_cast<std::size_t>(count), IoStatus::ok);
}

void tune(int fd) noexcept {
  const auto set = [fd](int level, int option, int value) { ::setsockopt(fd, level, option, &value, sizeof value); };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  // A peer that vanished without a word is found out in a minute.
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

// A connect to a closed local port can meet its own source port: then we would read our own commands as replies.
bool meets_itself(int fd) noexcept {
  sockaddr_storage own{};
  sockaddr_storage peer{};
  socklen_t own_size = sizeof own;
  socklen_t peer_size = sizeof peer;
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size) == 0 &&
         ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0 && own_size == peer_size &&
         std::memcmp(&own, &peer, own_size) == 0;
}

Dialled not_dialled(int number) noexcept { return {OwnedFd{}, IoStatus::failed, system_error(number)}; }

}  // namespace

IoStatus over(const Limits& limits) noexcept {
  if (limits.stop.stop_requested()) return IoStatus::cancelled;
  return LeaseClock::now() >= limits.deadline ? IoStatus::timed_out : IoStatus::ok;
}

SocketAddress unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  SocketAddress result;
  std::memcpy(&result.storage, &address, sizeof address);
  result.size = sizeof address;
  return result;
}

std::string numeric_host(const SocketAddress& address) {
  char host[NI_MAXHOST];
  const auto* any = reinterpret_cast<const sockaddr*>(&address.storage);
  return ::getnameinfo(any, address.size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) == 0 ? host : "?";
}

Dialled dial(const SocketAddress& to, const Limits& limits) noexcept {
  if (const IoStatus status = over(limits); status != IoStatus::ok) return {OwnedFd{}, status, {}};
  const int family = to.storage.ss_family;
  OwnedFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return not_dialled(errno);
  if (family != AF_UNIX) tune(fd.get());

  while (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to.storage), to.size) != 0) {
    if (errno == EAGAIN && family == AF_UNIX) {  // the backlog is full, and nothing tells when it no longer is
      if (const IoStatus status = over(limits); status != IoStatus::ok) return {OwnedFd{}, status, {}};
      wait_ready(-1, 0, {std::min(limits.deadline, deadline_in(Millis(5))), limits.stop});
      continue;
    }
    if (errno != EINPROGRESS && errno != EINTR) return not_dialled(errno);
    const IoStatus status = wait_ready(fd.get(), POLLOUT, limits);
    if (status != IoStatus::ok)
      return {OwnedFd{}, status, status == IoStatus::failed ? system_error(errno) : std::error_code{}};
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    if (error != 0) return not_dialled(error);
    break;
  }
  if (family != AF_UNIX && meets_itself(fd.get())) return not_dialled(ECONNREFUSED);

  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags & ~O_NONBLOCK) != 0) return not_dialled(errno);
  return {std::move(fd), IoStatus::ok, {}};
}

Io SocketTransport::write(std::string_view bytes, const Limits& limits) noexcept {
  if (limits.stop.stop_requested()) return ended(0, IoStatus::cancelled);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t sent = ::send(fd_.get(), bytes.data() + done, bytes.size() - done, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
      done += static_cast<std::size_t>(sent);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return ended(done, IoStatus::failed);
    // Asked first: a peer that always makes a little room would carry us past the limits.
    IoStatus status = over(limits);
    if (status == IoStatus::ok) status = wait_ready(fd_.get(), POLLOUT, limits);
    if (status != IoStatus::ok) return ended(done, status);
  }
  return ended(done, IoStatus::ok);
}

// A receive time-out somewhat below what is left spares the poll, and is seldom set anew: after it the rest is polled.
bool SocketTransport::bound_recv(Duration left) noexcept {
  left = std::min(left, longest_wait);
  if (left < Millis(20)) return false;
  // The kernel rounds up to its tick.
  if (recv_limit_ >= left / 2 && recv_limit_ <= left - Millis(5)) return true;
  const Duration limit = left / 4 * 3;
  const auto whole = duration_cast<seconds>(limit);
  const timeval timeout{whole.count(), duration_cast<std::chrono::microseconds>(limit - whole).count()};
  if (::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) != 0) return false;
  recv_limit_ = limit;
  return true;
}

Io SocketTransport::read(std::span<char> into, const Limits& limits) noexcept {
  const int fd = fd_.get();
  if (fd < 0) return {0, IoStatus::failed, system_error(EBADF)};
  if (!limits.stop.stop_possible()) {
    const Duration left = left_until(limits.deadline);
    if (left == Duration::zero()) return read_now(into);
    if (bound_recv(left)) {
      const ssize_t count = ::recv(fd, into.data(), into.size(), 0);
      if (count >= 0 || (errno != EAGAIN && errno != EINTR)) return received(count);
    }
  }
  for (;;) {
    const IoStatus status = wait_ready(fd, POLLIN, limits);
    if (status != IoStatus::ok) return ended(0, status);
    const ssize_t count = ::recv(fd, into.data(), into.size(), MSG_DONTWAIT);
    if (count >= 0 || (errno != EAGAIN && errno != EINTR)) return received(count);
  }
}

Io SocketTransport::read_now(std::span<char> into) noexcept {
  const ssize_t count = ::recv(fd_.get(), into.data(), into.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return ended(0, IoStatus::timed_out);
  return received(count);
}

bool SocketTransport::quiet() noexcept {
  char byte{};
  return ::recv(fd_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

}  // namespace v0
}  // namespace redlease
