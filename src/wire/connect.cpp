#include "wire/connect.hpp"

#include <string>
#include <utility>
#include <vector>

#include "concat.hpp"
#include "wire/resolve.hpp"
#include "wire/tls.hpp"

namespace redlease {
inline namespace v0 {
namespace {

Error cancelled(const Endpoint& endpoint) {
  return {Errc::cancelled, concat({"stopped while connecting to ", endpoint.display, "; nothing was sent"})};
}

std::string hint(const std::error_code& error) {
  if (error == std::errc::connection_refused || error == std::errc::no_such_file_or_directory) {
    return " Is the server running there?";
  }
  if (error == std::errc::too_many_files_open) return " Raise the process' limit of open files.";
  return "";
}

}  // namespace

Result<OwnedFd> dial_any(const Endpoint& endpoint, const std::vector<SocketAddress>& addresses, const Limits& limits) {
  std::string failures;
  std::error_code last;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const Deadline now = LeaseClock::now();
    const auto left = limits.deadline > now ? limits.deadline - now : LeaseClock::duration::zero();
    const auto share = left / static_cast<LeaseClock::rep>(addresses.size() - i);
    Dialled dialled = dial(addresses[i], {deadline_after(now, share), limits.stop});
    if (dialled.status == IoStatus::ok) return std::move(dialled.fd);
    if (dialled.status == IoStatus::cancelled) return cancelled(endpoint);
    last = dialled.error;
    if (addresses.size() > 1) failures += concat({i == 0 ? "" : "; ", numeric_host(addresses[i]), ": "});
    failures += dialled.status == IoStatus::failed ? dialled.error.message()
                                                   : "no answer to the connection attempt within the limit";
  }
  const bool late = LeaseClock::now() >= limits.deadline;
  return Error{late ? Errc::timed_out : Errc::connect_failed,
               concat({"cannot connect to ", endpoint.display, ": ", failures, "; nothing was sent.", hint(last)})};
}

namespace {

Result<OwnedFd> dial_endpoint(const Endpoint& endpoint, const Limits& limits) {
  if (endpoint.kind == Endpoint::Kind::unix_socket) return dial_any(endpoint, {unix_address(endpoint.path)}, limits);
  auto addresses = resolve(endpoint.host, endpoint.port, limits);
  if (!addresses.has_value()) return addresses.error();
  return dial_any(endpoint, addresses.value(), limits);
}

}  // namespace

Result<std::unique_ptr<Transport>> connect(const Endpoint& endpoint, const Limits& limits) {
  auto fd = dial_endpoint(endpoint, limits);
  if (!fd.has_value()) return fd.error();
  if (endpoint.kind == Endpoint::Kind::tls) return connect_tls(std::move(fd).value(), endpoint, limits);
  return std::unique_ptr<Transport>(std::make_unique<SocketTransport>(std::move(fd).value()));
}

}  // namespace v0
}  // namespace redlease
