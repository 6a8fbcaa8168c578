#include "cli/follower.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>

#include "cli/glob.hpp"
#include "cli/output.hpp"

namespace redlease::cli {

Follower::Follower(const Context& context, Client& client, const std::vector<std::string>& names,
                   const std::optional<std::string>& pattern)
    : context_(context), client_(client), named_(names.begin(), names.end()), pattern_(pattern) {
  (void)context.endpoint();  // memory: has nothing to look at
  if (pattern) {
    if (auto name = glob_literal(*pattern)) {
      named_.insert(*std::move(name));
      pattern_.reset();
    }
  }
  for (const std::string& name : named_) (void)LeaseKey(name);  // throws for what no lease can be called
  followed_ = named_;
}

void Follower::find(const std::stop_token& stop) {
  const Deadline begun = LeaseClock::now();
  scan_names(context_, *pattern_, Wanted::ours, stop, [&](std::vector<std::string> names) {
    std::erase_if(names, [&](const std::string& name) { return followed_.contains(name); });
    for (const Look& look : look_at(client_, names, stop)) {
      if (look.info && (is_ours(*look.info) || look.info->waiters > 0)) followed_.insert(look.key);
    }
  });
  const Deadline ended = LeaseClock::now();
  next_find_ = ended + 19 * (ended - begun);
}

std::vector<Look> Follower::round(const std::stop_token& stop) {
  if (pattern_ && LeaseClock::now() >= next_find_) find(stop);
  auto looks = look_at(client_, {followed_.begin(), followed_.end()}, stop);
  for (const Look& look : looks) {
    if (!look.info && named_.contains(look.key) && !stop.stop_requested()) {
      throw Failure(Exit::not_a_lease, "not_a_lease",
                    fmt::format("{} at {} holds something that is no lease", printable(look.key), context_.server()));
    }
  }
  return looks;
}

void Follower::forget(const std::string& name) {
  if (!named_.contains(name)) followed_.erase(name);
}

bool may_pass(const Failure& failure) noexcept {
  return failure.exit == number(Exit::unavailable) || failure.exit == number(Exit::unknown);
}

std::string utc_now() {
  const auto now = std::chrono::floor<Millis>(std::chrono::system_clock::now());
  const auto millis = now.time_since_epoch().count() % 1'000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(now)), millis);
}

}  // namespace redlease::cli
