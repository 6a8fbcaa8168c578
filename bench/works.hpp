#pragma once
// What the waiters wait for.
#include <redlease/redlease.hpp>
#include <string>

#include "crew.hpp"
#include "raw.hpp"

namespace bench {

// The floor: a token passed on by BLPOP and LPUSH, over a connection for each waiter. Raw is this process's.
Work token_work(const std::string& url, Raw&);

// A lease, through one Client for each process. Each call is about a key of its own, so that nothing of the last one
// can be in the way.
Work lease_work(const std::string& url, redlease::Millis ttl, const redlease::ClientOptions& = {});

}  // namespace bench
