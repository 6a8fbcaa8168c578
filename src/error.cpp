#include "redlease/error.hpp"

#include <array>
#include <cstddef>
#include <new>

#include "concat.hpp"

namespace redlease {
inline namespace v0 {

namespace {

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "redlease"; }
  std::string message(int code) const override {
    switch (static_cast<Errc>(code)) {
      case Errc::busy: return "another holds the lease";
      case Errc::unknown_outcome: return "the request left and no reply came, so its outcome is not known";
      case Errc::lost: return "the lease is no longer ours";
      case Errc::timed_out: return "the deadline passed and nothing was executed";
      case Errc::cancelled: return "cancelled by its stop token";
      case Errc::resolve_failed: return "the host name has no address";
      case Errc::connect_failed: return "no address of the host took a connection";
      case Errc::connection_closed: return "the connection was closed";
      case Errc::tls_failed: return "no trusted TLS connection could be made";
      case Errc::denied: return "the server denied access";
      case Errc::not_ready: return "the server cannot serve this now";
      case Errc::not_a_lease: return "the key holds something that is not a lease";
      case Errc::no_quorum: return "fewer than a majority of the servers agreed";
      case Errc::too_few_acks: return "fewer replicas than asked for have acknowledged";
      case Errc::unsupported: return "the server lacks what was asked for";
      case Errc::server_error: return "the server answered with an error";
      case Errc::bad_reply: return "the reply does not belong to what was asked";
      case Errc::too_many_connections: return "all connections stayed in use until the deadline";
    }
    return "unknown redlease error " + std::to_string(code);
  }
};

}  // namespace

const std::error_category& category() noexcept {
  // Never destroyed, since error codes outlive statics; not on the heap, since errors come when memory is short.
  alignas(Category) static std::array<std::byte, sizeof(Category)> room;
  static const std::error_category* const category = new (room.data()) Category;
  return *category;
}

std::error_code make_error_code(Errc code) noexcept { return {static_cast<int>(code), category()}; }

AcquireError::AcquireError(AcquireOutcome outcome, Error error)
    : std::system_error(error.code), outcome_(outcome), detail_(error.detail) {}

LeaseLost::LeaseLost(Error error) : std::system_error(error.code), detail_(error.detail) {}

std::string concat(std::initializer_list<std::string_view> parts) {
  std::size_t size = 0;
  for (const std::string_view part : parts) size += part.size();
  std::string all;
  all.reserve(size);
  for (const std::string_view part : parts) all += part;
  return all;
}

}  // namespace v0
}  // namespace redlease
