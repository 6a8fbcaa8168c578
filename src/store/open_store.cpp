#include "store/open_store.hpp"

#include <stdexcept>
#include <string>

#include "redlease/store/memory_store.hpp"
#include "redlease/store/redis_store.hpp"
#include "redlease/wire/endpoint.hpp"

namespace redlease {
inline namespace v0 {

std::shared_ptr<LeaseStore> open_store(std::string_view url, const ClientOptions& options) {
  const Clock& clock = options.clock != nullptr ? *options.clock : Clock::real();
  constexpr std::string_view memory = "memory:";
  if (url.starts_with(memory)) {
    const std::string_view name = url.substr(memory.size());
    if (name.starts_with('/') || name.find('?') != std::string_view::npos) {
      throw std::invalid_argument("redlease: memory: takes a bare name (memory:jobs) or none, and no options");
    }
    if (name.empty()) return std::make_shared<MemoryStore>(clock);
    if (options.clock != nullptr) {
      throw std::invalid_argument(
          "redlease: a shared memory:name runs on the real clock; for a clock of your own use memory: "
          "or hand in a MemoryStore");
    }
    return MemoryStore::shared(name);
  }
  Endpoint endpoint = parse_endpoint(url);
  endpoint.client_name = options.name;
  endpoint.tls = options.tls;
  return std::make_shared<RedisStore>(std::move(endpoint), options.max_connections, options.observer, clock,
                                      options.max_inboxes);
}

}  // namespace v0
}  // namespace redlease
