#include <utility>

#include "redlease/lease.hpp"

namespace redlease {
inline namespace v0 {

std::optional<Lease> AcquireResult::lease() && {
  if (Lease* lease = std::get_if<Lease>(&v_)) return std::move(*lease);
  return std::nullopt;
}

std::optional<Claim> AcquireResult::claim() && {
  if (Claim* claim = std::get_if<Claim>(&v_)) return std::move(*claim);
  return std::nullopt;
}

}  // namespace v0
}  // namespace redlease
