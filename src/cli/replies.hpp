#pragma once
#include "redlease/wire/connection.hpp"

namespace redlease::cli {

/// The next reply to what was sent; nothing if the connection is dead, or the limits are reached.
const Reply* next_reply(Connection&, const Limits&);

}  // namespace redlease::cli
