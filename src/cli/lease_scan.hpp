#pragma once
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "cli/context.hpp"

namespace redlease::cli {

/// Which names a pass over the server's keys is to find.
enum class Wanted : bool {
  ours,  ///< of leases that this library's meta key is there for, held or free
  all,   ///< besides: what has a queue, and other keys that expire
};

/// Whose lease this helper key belongs to, if it is one: K:lease:meta, or K:{K}lease:meta.
std::optional<std::string> lease_of_helper(std::string_view key);

/// Finds names that match `pattern` (see glob.hpp) below the context's prefix: a pass by SCAN, 500 keys at a time, one
/// page after the other, so that neither side is burdened by how many keys there are. `page` gets the names found,
/// without the prefix; one may come more than once, and need not be a lease any more. Throws Failure.
void scan_names(const Context&, const std::string& pattern, Wanted, const std::stop_token&,
                const std::function<void(const std::vector<std::string>&)>& page);

/// One look at one key.
struct Look {
  std::string key;
  Deadline at;                    ///< about when the server answered
  std::optional<LeaseInfo> info;  ///< none: the key holds another type, or a stop came first
};

/// Looks at all of them, a few at a time, and answers in their order. Throws Failure.
std::vector<Look> look_at(Client&, const std::vector<std::string>& names, const std::stop_token&);

/// Held by a holder of this library's, who is remembered beside the key.
inline bool is_ours(const LeaseInfo& info) { return info.held && info.held_for.has_value(); }

}  // namespace redlease::cli
