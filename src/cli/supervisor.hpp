#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "cli/command.hpp"
#include "cli/context.hpp"
#include "cli/events.hpp"
#include "cli/terminal.hpp"
#include "mutex.hpp"
#include "redlease/lease_guard.hpp"
#include "redlease/observer.hpp"

namespace redlease::cli {

/// Why the latest renewal did not succeed; empty if it did.
class LastRenewal final : public Observer {
 public:
  void renewed(const Event&) noexcept override;
  void renew_failed(const Event&) noexcept override;
  std::string trouble() const;

 private:
  mutable Mutex mutex_;
  std::string trouble_ REDLEASE_GUARDED_BY(mutex_);
};

/// How long a command may go on.
struct Terms {
  Millis grace{};                 ///< between SIGTERM and SIGKILL to what the command left behind
  Millis stop{};                  ///< SIGTERM so long before the end
  Deadline cap{Deadline::max()};  ///< --max-hold
};

/// Watches over a command that runs as the holder of a lease, until nothing of its group is left. All that is decided
/// meanwhile is decided in run(), on the thread that calls it. Whoever makes it sees to it that a loss wakes `events`.
class Supervisor {
 public:
  /// `in_foreground`: the command is to have the terminal whenever this process has it to give.
  Supervisor(const Context&, Events&, Terminal&, bool in_foreground, Command&, const LeaseGuard&, const LastRenewal&,
             const Terms&);

  /// The command's exit code.
  int run();
  /// Whether the command was told to stop, or killed, for the lease's sake.
  bool cut_short() const { return cut_short_; }

 private:
  Deadline end() const;
  Deadline next_step() const;
  void watch_the_lease();
  void kill();
  void terminate();
  void take(int signal);
  void resume();
  void follow(int stop);
  void leader_ended();
  std::string why_lost() const;
  void note(std::string_view) const;

  const Context& context_;
  Events& events_;
  Terminal& terminal_;
  Command& command_;
  const LeaseGuard& guard_;
  const LastRenewal& renewals_;
  const Terms terms_;
  const std::string key_;
  const bool in_foreground_;
  bool cut_short_{false}, leader_ended_{false};
  std::optional<Deadline> killed_at_;
  Deadline rest_until_{Deadline::max()};  // when what the command left behind is killed
};

}  // namespace redlease::cli
