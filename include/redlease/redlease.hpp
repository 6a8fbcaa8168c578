#pragma once
// Leases on Redis and Valkey: all that users include.
#include "redlease/client.hpp"
#include "redlease/clock.hpp"
#include "redlease/error.hpp"
#include "redlease/fenced.hpp"
#include "redlease/lease.hpp"
#include "redlease/lease_guard.hpp"
#include "redlease/lease_info.hpp"
#include "redlease/metrics.hpp"
#include "redlease/observer.hpp"
#include "redlease/options.hpp"
#include "redlease/types.hpp"
#include "redlease/version.hpp"
