#include "wire/resolve.hpp"

#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "concat.hpp"
#include "mutex.hpp"
#include "thread.hpp"

namespace redlease {
inline namespace v0 {
namespace {

constexpr std::size_t most_lookups = 16;
// A lookup older than this may be hanging on a resolver that has come back meanwhile.
constexpr Millis fresh{1'000};

struct Pending {
  Pending(std::string name, Lookup by, Deadline now) : host(std::move(name)), lookup(by), started(now) {}
  const std::string host;
  const Lookup lookup;
  const Deadline started;
  Mutex mutex{};
  std::condition_variable_any done{};
  std::optional<Found> found REDLEASE_GUARDED_BY(mutex){};
};

struct Running {
  std::uint64_t generation;
  Mutex mutex{};
  std::vector<std::shared_ptr<Pending>> lookups REDLEASE_GUARDED_BY(mutex){};  // newest last
};

// Leaked, at exit because a lookup may outlive every static, and by a forked child because its parent's mutex may have
// been locked. Not a static with an initialiser: its guard would be one more lock for a fork to catch.
Running& running() {
  static constinit std::atomic<Running*> current{nullptr};
  const std::uint64_t now = fork_generation();
  Running* known = current.load();
  if (known != nullptr && known->generation == now) return *known;
  auto* made = new Running{now};
  if (current.compare_exchange_strong(known, made)) return *made;
  delete made;
  return *known;
}

Found addresses_of(const std::string& host, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  Found found;
  found.code = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  found.system_error = errno;
  if (found.code != 0) return found;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, ::freeaddrinfo);
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    if (one->ai_family != AF_INET && one->ai_family != AF_INET6) continue;
    SocketAddress& address = found.addresses.emplace_back();
    std::copy_n(reinterpret_cast<const char*>(one->ai_addr), one->ai_addrlen,
                reinterpret_cast<char*>(&address.storage));
    address.size = one->ai_addrlen;
  }
  return found;
}

void look_up(Running& all, const std::shared_ptr<Pending>& pending) {
  Found found;
  try {
    found = pending->lookup(pending->host);
  } catch (const std::bad_alloc&) {
    found.code = EAI_MEMORY;
  }
  {
    const MutexLock lock(all.mutex);
    std::erase(all.lookups, pending);
  }
  {
    const MutexLock lock(pending->mutex);
    pending->found = std::move(found);
  }
  pending->done.notify_all();
}

// One to wait for; null if there are too many.
std::shared_ptr<Pending> join_or_start(const std::string& host, Lookup lookup) {
  Running& all = running();
  const MutexLock lock(all.mutex);
  const bool full = all.lookups.size() >= most_lookups;
  const Deadline now = LeaseClock::now();
  const auto shared = std::find_if(all.lookups.rbegin(), all.lookups.rend(), [&](const auto& one) {
    return one->host == host && one->lookup == lookup && (full || now - one->started < fresh);
  });
  if (shared != all.lookups.rend()) return *shared;
  if (full) return nullptr;
  auto pending = std::make_shared<Pending>(host, lookup, now);
  all.lookups.push_back(pending);
  try {
    start_thread("redlease-dns", [&all, pending] { look_up(all, pending); }).detach();
  } catch (...) {
    all.lookups.pop_back();
    throw;
  }
  return pending;
}

Error failure(Errc code, const std::string& host, const std::string& why) {
  return {code, concat({"the host name '", host, "' could not be resolved: ", why, "; nothing was sent"})};
}

Result<std::vector<SocketAddress>> with_port(const Found& found, const std::string& host, std::uint16_t port) {
  if (found.code == EAI_SYSTEM) {
    return failure(Errc::resolve_failed, host, std::system_category().message(found.system_error));
  }
  if (found.code != 0) return failure(Errc::resolve_failed, host, ::gai_strerror(found.code));
  if (found.addresses.empty()) return failure(Errc::resolve_failed, host, "it has no IPv4 or IPv6 address");
  auto addresses = found.addresses;
  for (SocketAddress& address : addresses) {
    if (address.storage.ss_family == AF_INET) {
      reinterpret_cast<sockaddr_in&>(address.storage).sin_port = htons(port);
    } else {
      reinterpret_cast<sockaddr_in6&>(address.storage).sin6_port = htons(port);
    }
  }
  return addresses;
}

}  // namespace

Found system_lookup(const std::string& host) { return addresses_of(host, 0); }

Result<std::vector<SocketAddress>> resolve(const std::string& host, std::uint16_t port, const Limits& limits,
                                           Lookup lookup) {
  if (const Found literal = addresses_of(host, AI_NUMERICHOST); literal.code == 0) {
    return with_port(literal, host, port);
  }
  std::shared_ptr<Pending> pending;
  try {
    pending = join_or_start(host, lookup);
  } catch (const std::system_error& e) {
    return failure(Errc::resolve_failed, host, std::string("no thread could be started for it (") + e.what() + ")");
  }
  if (pending == nullptr) {
    return failure(Errc::resolve_failed, host,
                   std::to_string(most_lookups) + " other lookups have had no answer yet; is the name server down?");
  }
  const MutexLock lock(pending->mutex);
  while (!pending->found) {
    if (limits.stop.stop_requested()) return failure(Errc::cancelled, host, "stopped while waiting for an answer");
    if (LeaseClock::now() >= limits.deadline) {
      return failure(Errc::timed_out, host, "no answer within the limit; is the name server down?");
    }
    // In steps, since the library adds to the time it is given.
    const Deadline until = std::min(limits.deadline, deadline_in(std::chrono::hours(1)));
    pending->done.wait_until(pending->mutex, limits.stop, until,
                             [&]() REDLEASE_REQUIRES(pending->mutex) { return pending->found.has_value(); });
  }
  return with_port(*pending->found, host, port);
}

}  // namespace v0
}  // namespace redlease
