#pragma once
#include <string_view>

#include "redlease/client.hpp"
#include "redlease/error.hpp"
#include "redlease/export.hpp"
#include "redlease/lease_info.hpp"
#include "redlease/types.hpp"

namespace redlease {
inline namespace v0 {

/// Writes `value` under `resource_key` (prefixed like any name) only if no newer fence has written there, in one atomic
/// step on the server. An equal fence is accepted: one holder may write many times.
///
/// Stores a hash with the fields `fence` and `value` and without an expiry: it is your data. A key that holds anything
/// else is refused (not_a_lease) and left alone. A time-out after the request left is Errc::unknown_outcome; repeating
/// the call is harmless. Throws std::invalid_argument for a name that is no LeaseKey and for a fence above 2^53 - 2. At
/// most 1 s.
REDLEASE_EXPORT Result<Fenced> fenced_set(Client&, std::string_view resource_key, std::string_view value, FencingToken);

}  // namespace v0
}  // namespace redlease
