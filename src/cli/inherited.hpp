#pragma once
#include <csignal>

namespace redlease::cli {

/// What this process was given by whoever started it and the tool changes for itself. A command that it runs is to
/// find it as it was.
class Inherited {
 public:
  /// Notes it, and from then on: SIGPIPE is ignored, since a tool that dies of it could not give its lease back;
  /// SIGCHLD is not, since a child's end would be missed; and of the descriptors 0 to 2 those that are closed are
  /// taken, so that no socket of ours becomes somebody's stdout. First thing in main().
  Inherited();

  /// As it was. In a child, between fork and exec: calls nothing but what is async-signal-safe.
  void restore() const noexcept;

 private:
  sigset_t mask_{};
  struct sigaction pipe_ {};
  struct sigaction child_ {};
};

/// Whether it was to be ignored when the tool began, as under nohup: then it stays so, blocked or not.
bool ignored(int signal);

}  // namespace redlease::cli
