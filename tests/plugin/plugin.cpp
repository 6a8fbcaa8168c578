// A plug-in that brings redlease with it.
#include <chrono>
#include <exception>
#include <memory>
#include <string>

#include "redlease/redlease.hpp"

namespace {

const redlease::LeaseOptions lasting{.ttl = std::chrono::minutes(10), .op_timeout = std::chrono::seconds(20)};

// Idle when the plug-in is unloaded.
std::unique_ptr<redlease::Client> client;
std::string client_url;

}  // namespace

extern "C" [[gnu::visibility("default")]] int plugin_runs_under_a_lease(const char* url, const char* key) noexcept {
  try {
    if (client_url != url) client = std::make_unique<redlease::Client>(client_url = url);
    redlease::LeaseGuard guard(*client, key, lasting);
    guard.ensure_held();
    return guard.release() == redlease::ReleaseOutcome::released ? 1 : 0;
  } catch (const std::exception&) {
    return -1;
  }
}
