// watch: the leases of a server as they come and go.
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "cli/commands.hpp"
#include "cli/duration_option.hpp"
#include "cli/exit_code.hpp"
#include "cli/follower.hpp"
#include "cli/output.hpp"
#include "cli/stop_on_signal.hpp"
#include "cli/watch_view.hpp"
#include "nap.hpp"

namespace redlease::cli {
namespace {

using namespace std::chrono_literals;

struct Given {
  std::string pattern{"*"};
  Millis interval{1'000}, limit{forever};
};

// What was last known of each key, and when.
class Known {
 public:
  explicit Known(Follower& follower) : follower_(follower) {}

  void see(std::vector<Look> looks, View& view) {
    for (Look& look : looks) {
      const auto found = at_.find(look.key);
      // What a pattern finds later was free at the first look.
      const LeaseInfo free;
      const LeaseInfo* before = found != at_.end() ? &leases_.at(look.key) : first_ ? nullptr : &free;
      LeaseInfo now = std::move(look.info).value_or(LeaseInfo{});
      const Millis elapsed = found != at_.end() ? std::chrono::floor<Millis>(look.at - found->second) : 0ms;
      for (const Change& change : changes(before, now, elapsed)) view.changed(look.key, change);
      if (!now.held && now.waiters == 0) follower_.forget(look.key);
      at_[look.key] = look.at;
      leases_[look.key] = std::move(now);
    }
    first_ = false;
    std::erase_if(leases_, [&](const auto& lease) {
      const bool over = !lease.second.held && lease.second.waiters == 0;
      if (over) at_.erase(lease.first);
      return over;
    });
    view.round(leases_);
  }

 private:
  Follower& follower_;
  std::map<std::string, LeaseInfo> leases_;
  std::map<std::string, Deadline> at_;
  bool first_{true};
};

int watch(const Context& context, const Given& given) {
  if (given.interval < 10ms) throw Failure(Exit::usage, "usage", "--interval must be at least 10ms");
  const StopOnSignal signals;
  Client client = context.client();
  Follower follower(context, client, {}, given.pattern);
  Known known(follower);
  std::unique_ptr<View> view;
  const Deadline end = deadline_in(given.limit);
  for (;;) {
    const Deadline begun = LeaseClock::now();
    try {
      auto looks = follower.round(signals.token());
      if (signals.signal() != 0) return 128 + signals.signal();
      // Only now: what cannot work from the start is told on the usual screen.
      if (!view) {
        const bool table = Screen(STDOUT_FILENO).movable && !context.json();
        view = table ? table_view(context, given.pattern) : line_view(context);
      }
      view->trouble({});
      known.see(std::move(looks), *view);
    } catch (const Failure& failure) {
      if (signals.signal() != 0) return 128 + signals.signal();
      if (failure.code == "no_reader") return number(Exit::ok);
      if (!view || !may_pass(failure)) throw;
      view->trouble(failure.what());
    }
    // Where looking takes long, half of the time is left to others.
    const Deadline now = LeaseClock::now();
    const Deadline next = std::min(end, std::max(deadline_after(begun, given.interval), now + (now - begun)));
    while (LeaseClock::now() < next && signals.signal() == 0) {
      redlease::nap({std::min(next, LeaseClock::now() + 100ms), signals.token()});
      if (!view->idle()) return number(Exit::ok);
    }
    if (signals.signal() != 0) return 128 + signals.signal();
    if (LeaseClock::now() >= end) return number(Exit::ok);
  }
}

}  // namespace

void add_watch(CLI::App& app, Context& context) {
  auto given = std::make_shared<Given>();
  CLI::App* command = app.add_subcommand("watch", "Show the leases that are held as they come and go");
  command->add_option("pattern", given->pattern, "Which names: *, ?, [a-z]; default all")->type_name("PATTERN");
  add_duration(*command, "--interval", given->interval, "How often to look; default 1s");
  add_duration(*command, "--for", given->limit, "For how long; default forever", "forever");
  command->callback([&context, given] { context.action = [&context, given] { return watch(context, *given); }; });
}

}  // namespace redlease::cli
