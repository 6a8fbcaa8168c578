#pragma once
// Runs the doctor and does what it suggests.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "tool/tool.hpp"

namespace redlease {
inline namespace v0 {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

struct Examined {
  int exit;
  Json json;
  std::string err;
  /// Of one check; null if it is not there.
  Json finding(const std::string& id) const;
  std::string status(const std::string& id) const;
};

/// What concerns the host of the tests is left out.
Examined examine(const std::string& url, const Words& options = {});

/// The check has this status, and everything is said that is to be said. `found` is in what was found or in the mend.
void expect_found(const Examined&, const std::string& id, const std::string& status, const std::string& found);

/// Runs what stands between backticks in the finding's `mend`: at the server, or in the tool if it says "redlease".
/// Returns how much that was. A command that the server refuses is a failure of the test.
int do_as_told(const Examined&, const std::string& id, RawClient& server, const std::string& url);

/// The finding becomes "ok" in time.
void expect_mended(const std::string& url, const std::string& id, const Words& options = {});

/// "a b c" in words.
Words words(const std::string&);
/// docs/acl.md, and what the doctor asks besides.
const Words& lease_rules();
const Words& doctor_rules();
/// A user `limited` with the password "word". Channels as the rules say, none by default.
void make_user(RawClient&, const std::string& keys, const Words& rules);
std::string url_as_limited(const RedisServer&);

}  // namespace v0
}  // namespace redlease
