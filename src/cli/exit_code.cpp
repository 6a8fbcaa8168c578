#include "cli/exit_code.hpp"

#include <fmt/format.h>

namespace redlease::cli {

Exit exit_for(const std::error_code& code) noexcept {
  if (code.category() != category()) return Exit::unavailable;
  switch (static_cast<Errc>(code.value())) {
    case Errc::busy: return Exit::busy;
    case Errc::unknown_outcome: return Exit::unknown;
    case Errc::lost: return Exit::lost;
    case Errc::denied: return Exit::denied;
    case Errc::not_a_lease:
    case Errc::unsupported: return Exit::not_a_lease;
    case Errc::timed_out:
    case Errc::cancelled:
    case Errc::resolve_failed:
    case Errc::connect_failed:
    case Errc::connection_closed:
    case Errc::tls_failed:
    case Errc::not_ready:
    case Errc::no_quorum:
    case Errc::too_few_acks:
    case Errc::server_error:
    case Errc::bad_reply:
    case Errc::too_many_connections: break;
  }
  return Exit::unavailable;
}

std::string code_name(const std::error_code& code) {
  if (code.category() != category()) return "system_error";
  switch (static_cast<Errc>(code.value())) {
    case Errc::busy: return "busy";
    case Errc::unknown_outcome: return "unknown_outcome";
    case Errc::lost: return "lost";
    case Errc::timed_out: return "timed_out";
    case Errc::cancelled: return "cancelled";
    case Errc::resolve_failed: return "resolve_failed";
    case Errc::connect_failed: return "connect_failed";
    case Errc::connection_closed: return "connection_closed";
    case Errc::tls_failed: return "tls_failed";
    case Errc::denied: return "denied";
    case Errc::not_ready: return "not_ready";
    case Errc::not_a_lease: return "not_a_lease";
    case Errc::no_quorum: return "no_quorum";
    case Errc::too_few_acks: return "too_few_acks";
    case Errc::unsupported: return "unsupported";
    case Errc::server_error: return "server_error";
    case Errc::bad_reply: return "bad_reply";
    case Errc::too_many_connections: return "too_many_connections";
  }
  return "unknown_error";
}

Failure interrupted(int signal, std::string_view what) {
  return {128 + signal, "interrupted", fmt::format("interrupted {}", what)};
}

Failure failure(const Error& error) { return {exit_for(error.code), code_name(error.code), error.detail}; }

}  // namespace redlease::cli
