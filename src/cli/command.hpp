#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/inherited.hpp"
#include "cli/terminal.hpp"

namespace redlease::cli {

/// A command that runs as a child of this process: the leader of a process group of its own, and whoever it starts and
/// leaves in that group. All is done on one thread, the one that made it.
class Command {
 public:
  /// `environment` is the whole of it, as NAME=value. The terminal is given to the group from the start if
  /// `in_foreground`. The child gets SIGTERM if this process dies without a word (PR_SET_PDEATHSIG).
  Command(const std::vector<std::string>& argv, std::vector<std::string> environment, const Inherited&, Terminal&,
          bool in_foreground);
  /// Kills what is left of the group, for when an exception ends it all.
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  pid_t group() const { return leader_; }

  /// Takes in what the kernel has to tell of children. After SIGCHLD.
  void reap();
  /// The leader's exit code once it has ended; 128 + n if a signal ended it.
  std::optional<int> status() const { return status_; }
  /// Throws Failure (126, 127) if that was because the command could not be run. Nobody waits for that to be known:
  /// until then the child may be stopped, or its program's file system slow, and the lease must be looked after.
  void check_that_it_ran() const;
  /// Whether nothing of the group is left, the leader included.
  bool over() const { return over_; }
  /// The signal that has stopped the leader since this was last asked; 0: none.
  int stopped_by();

  /// To the leader, unless it has ended.
  void signal_leader(int) const;
  /// To all of the group, unless it is over.
  void signal_group(int) const;

 private:
  const std::string name_;
  pid_t leader_{-1};
  int failure_{-1};  // from the child: the errno for which it could not run the command
  int start_error_{0};
  std::optional<int> status_;
  bool over_{false};
  int stopped_by_{0};
};

}  // namespace redlease::cli
