#include "wire/open_connection.hpp"

#include "redlease/observer.hpp"

namespace redlease {
inline namespace v0 {

Result<std::unique_ptr<Connection>> open_connection(const Endpoint& endpoint, Observer* observer,
                                                    const Limits& limits) {
  const Deadline begun = LeaseClock::now();
  auto opened = Connection::open(endpoint, limits);
  if (observer != nullptr) {
    observer->connected({.server = endpoint.display,
                         .elapsed = LeaseClock::now() - begun,
                         .error = opened.has_value() ? nullptr : &opened.error()});
  }
  return opened;
}

}  // namespace v0
}  // namespace redlease
