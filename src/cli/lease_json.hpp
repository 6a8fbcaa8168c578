#pragma once
#include <string>

#include "cli/context.hpp"

namespace redlease::cli {

/// One lease in the schema of docs/tool.md: key, held, holder, label, remaining_ms, held_for_ms, fence, waiters, queue.
Json lease_json(const std::string& key, const LeaseInfo&);

}  // namespace redlease::cli
