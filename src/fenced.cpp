#include "redlease/fenced.hpp"

#include <stdexcept>

#include "core.hpp"

namespace redlease {
inline namespace v0 {

Result<Fenced> fenced_set(Client& client, std::string_view resource_key, std::string_view value, FencingToken fence) {
  if (fence > highest_fencing_token) {
    throw std::invalid_argument("redlease: a fencing token is at most 2^53 - 2, as the servers' scripts count");
  }
  const Core& core = *LeaseMaker::core(client);
  return core.store->fenced_set(full_name(core, LeaseKey(resource_key).str()), value, fence, short_call());
}

}  // namespace v0
}  // namespace redlease
