#pragma once
#include <memory>

#include "redlease/wire/connection.hpp"

namespace redlease {
inline namespace v0 {

class Observer;

// Connection::open, of which the observer is told. It may be null.
Result<std::unique_ptr<Connection>> open_connection(const Endpoint&, Observer*, const Limits&);

}  // namespace v0
}  // namespace redlease
