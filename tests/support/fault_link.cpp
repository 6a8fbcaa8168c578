#include "support/fault_link.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace redlease {
inline namespace v0 {
namespace {

/// Reads all there is; false when the sender has closed.
template <class OnBytes>
bool drain(const TestFd& fd, OnBytes on_bytes) {
  std::array<char, 65536> bytes;
  while (true) {
    const ssize_t n = ::recv(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n == 0) return false;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    on_bytes(std::string_view(bytes.data(), static_cast<std::size_t>(n)));
  }
}

void wait_for(std::vector<pollfd>& sockets, const TestFd& fd, bool readable, bool writable) {
  const int events = (readable ? POLLIN : 0) | (writable ? POLLOUT : 0);
  // Without an event it would be polled for its end alone, which stays true for ever.
  if (fd && events != 0) sockets.push_back({fd.get(), static_cast<short>(events), 0});
}

}  // namespace

FaultLink::FaultLink(TestFd client, const ServerAddress& target, const Faults& faults) : client_(std::move(client)) {
  set(faults);
  try {
    server_ = connect_to(target, Blocking::no);
  } catch (const std::system_error&) {
    down_.ended();
    cut();
  }
}

void FaultLink::set(const Faults& faults) {
  up_.faults = faults.up;
  down_.faults = faults.down;
  reset_ = faults.reset;
}

void FaultLink::cut() {
  if (cut_) return;
  cut_ = true;
  // Unread bytes would turn the close into a RST.
  if (client_) drain(client_, [](std::string_view) {});
  if (client_ && reset_) {
    const linger at_once{1, 0};
    ::setsockopt(client_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  client_.close();
  if (server_) ::shutdown(server_.get(), SHUT_WR);
}

Deadline FaultLink::prepare(std::vector<pollfd>& sockets) const {
  if (cut_) {
    wait_for(sockets, server_, true, false);
    return Deadline::max();
  }
  wait_for(sockets, client_, !up_.has_ended(), down_.blocked());
  wait_for(sockets, server_, !down_.has_ended(), up_.blocked());
  return std::min(up_.next_due(), down_.next_due());
}

void FaultLink::receive() {
  if (!down_.has_ended() && !drain(server_, [&](std::string_view bytes) { down_.arrived(bytes); })) down_.ended();
  if (!cut_ && !up_.has_ended() && !drain(client_, [&](std::string_view bytes) { up_.arrived(bytes); })) up_.ended();
}

void FaultLink::pass_on_ends() {
  if (up_.finished() && !server_told_) {
    server_told_ = true;
    ::shutdown(server_.get(), SHUT_WR);
  }
  if (down_.finished()) cut();
}

void FaultLink::pump() {
  receive();
  if (!cut_) {
    up_.deliver(server_.get());
    down_.deliver(client_.get());
    const bool wanted = up_.faults.cut_after || down_.faults.cut_after;
    const bool up_reached = !up_.faults.cut_after || up_.cut_reached();
    const bool down_reached = !down_.faults.cut_after || down_.cut_reached();
    if (wanted && up_reached && down_reached) cut();
  }
  if (!cut_) pass_on_ends();
  if (cut_ && down_.has_ended()) server_.close();
}

}  // namespace v0
}  // namespace redlease
