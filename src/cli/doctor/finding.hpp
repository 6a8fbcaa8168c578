#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace redlease::cli::doctor {

class Exam;

/// From the best to the worst.
enum class Status : std::uint8_t { ok, unknown, warn, fail };

/// What one check came to. What is to be said to the server stands in `mend` between backticks.
struct Verdict {
  Status status;
  std::string found;       ///< the figure
  std::string risk, mend;  ///< what can go wrong, in plain words, and what mends it
};

inline Verdict ok(std::string found) { return {Status::ok, std::move(found), {}, {}}; }
inline Verdict unknown(std::string why) { return {Status::unknown, std::move(why), {}, {}}; }
inline Verdict warn(std::string found, std::string risk, std::string mend) {
  return {Status::warn, std::move(found), std::move(risk), std::move(mend)};
}
inline Verdict fail(std::string found, std::string risk, std::string mend) {
  return {Status::fail, std::move(found), std::move(risk), std::move(mend)};
}

/// One row of the table. The id is "group.what" and never changes: programs know it.
struct Check {
  std::string_view id;
  Verdict (*look)(Exam&);
};

// The groups, each in a file of its own, in the order in which they are looked at.
std::span<const Check> topology_checks();
std::span<const Check> memory_checks();
std::span<const Check> durability_checks();
std::span<const Check> replica_checks();
std::span<const Check> node_checks();  ///< only if there are further servers
std::span<const Check> permission_checks();
std::span<const Check> lease_checks();
std::span<const Check> key_checks();
std::span<const Check> clock_checks();
std::span<const Check> host_checks();

struct Finding {
  std::string_view id;
  Verdict verdict;
};

}  // namespace redlease::cli::doctor
