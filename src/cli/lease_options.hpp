#pragma once
#include <optional>
#include <string>

#include "cli/context.hpp"
#include "cli/exit_code.hpp"
#include "redlease/lease.hpp"

namespace redlease::cli {

/// --ttl, --wait, --op-timeout, --label, --fence-floor: how a lease is asked for.
void add_lease_options(CLI::App&, LeaseOptions&);

/// --busy-exit N.
void add_busy_exit(CLI::App&, int& into);

/// The lease; or nothing if another holds it, which is told on stderr. All else is a Failure, a signal that ended the
/// wait (0: none) too.
std::optional<Lease> lease_or_explain(const Context&, AcquireResult, const LeaseKey&, int signal, int busy_exit);

/// Releases it; all but released is a Failure.
void give_back(Lease&);

/// For a renewal or a release of what is not held.
Failure not_held(const std::string& key, std::optional<LossCause>);

}  // namespace redlease::cli
