#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "redlease/clock.hpp"

namespace redlease {
inline namespace v0 {

/// A terminal with the least of a shell in it: one job, started from a session of its own, as a shell with job control
/// does it. Killed with the object.
class JobShell {
 public:
  enum class Start {
    foreground,  ///< the job has the terminal
    background,  ///< as by "&"
    leader,      ///< no shell: the tool itself is the session's leader, as in `ssh -t host redlease …`
  };
  struct Job {
    std::vector<std::string> argv{};
    std::vector<std::string> env{};  ///< NAME=value, besides the test's own
    std::string stdout_file{};       ///< else the terminal
  };
  JobShell(const Job&, Start);
  ~JobShell();
  JobShell(const JobShell&) = delete;
  JobShell& operator=(const JobShell&) = delete;

  void type(const std::string&) const;
  void resize(unsigned short rows, unsigned short columns) const;
  /// What the terminal has shown so far.
  std::string shown();
  /// What the shell was told of its job so far: "stopped 20 exited 0".
  std::string told();
  void fg() const;
  void bg() const;
  /// The job's process group: the tool's process id.
  pid_t job() const { return job_; }
  /// The terminal goes away, of a leader only. The tool's exit code, or minus the signal that ended it; -9 if it does
  /// not end within ten seconds.
  int hang_up();
  /// The process group that has the terminal.
  pid_t in_front() const;

 private:
  int master_{-1}, orders_{-1}, news_{-1};
  pid_t shell_{-1}, job_{-1};
  std::string shown_, told_;
};

}  // namespace v0
}  // namespace redlease
