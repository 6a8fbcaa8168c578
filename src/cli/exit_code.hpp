#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "redlease/error.hpp"

namespace redlease::cli {

/// How the tool ends; documented in docs/tool.md and fixed. Numbers of sysexits.h where one fits.
enum class Exit : std::uint8_t {
  ok = 0,
  no_output = 1,     ///< what was to be printed or written could not be
  usage = 64,        ///< EX_USAGE
  not_a_lease = 65,  ///< EX_DATAERR: the key holds something else, or the server lacks what it takes
  unavailable = 69,  ///< EX_UNAVAILABLE: proved that nothing was done
  unknown = 74,      ///< EX_IOERR: the request left, no reply came
  busy = 75,         ///< EX_TEMPFAIL: another holds it, or it was waited for in vain
  denied = 77,       ///< EX_NOPERM
  lost = 79,         ///< the lease was lost, or is not held
};

constexpr int number(Exit e) { return static_cast<int>(e); }

/// Ends the command that throws it. main() tells it: the message on stderr, and with --json an object on stdout.
struct Failure : std::runtime_error {
  Failure(int exit_code, std::string code_name, const std::string& message)
      : std::runtime_error(message), exit(exit_code), code(std::move(code_name)) {}
  Failure(Exit e, std::string code_name, const std::string& message)
      : Failure(number(e), std::move(code_name), message) {}
  int exit;
  std::string code;  ///< for programs: "busy", "denied"
};

/// What an error of the library means here.
Exit exit_for(const std::error_code&) noexcept;
/// Its name in the schema: that of Errc.
std::string code_name(const std::error_code&);
/// SIGINT or another signal ended it: 128 and the signal's number.
Failure interrupted(int signal, std::string_view what);
/// The failure that an error is. Never a password: the library's errors hold none.
Failure failure(const Error&);

}  // namespace redlease::cli
