#pragma once
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/exit_code.hpp"
#include "cli/lease_scan.hpp"

namespace redlease::cli {

/// Looks again and again at keys that are named, and at those that a pattern finds held or waited for.
class Follower {
 public:
  /// A pattern without wildcards is a name.
  Follower(const Context&, Client&, const std::vector<std::string>& names, const std::optional<std::string>& pattern);

  /// One look at all that is followed, which new finds of the pattern join before. Looking for them is put off so that
  /// it takes no more than a twentieth of the time. Throws Failure.
  std::vector<Look> round(const std::stop_token&);

  /// No longer follows what the pattern found, until it is found again.
  void forget(const std::string& name);

 private:
  void find(const std::stop_token&);

  const Context& context_;
  Client& client_;
  std::set<std::string> named_, followed_;
  std::optional<std::string> pattern_;
  Deadline next_find_{Deadline::min()};
};

/// What may pass: the server, or the way to it, does not answer for the moment.
bool may_pass(const Failure&) noexcept;

/// "2026-03-01T12:30:05.042Z"
std::string utc_now();

}  // namespace redlease::cli
