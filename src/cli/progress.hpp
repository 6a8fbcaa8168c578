#pragma once
#include <string>
#include <thread>

#include "cli/context.hpp"
#include "cli/output.hpp"

namespace redlease::cli {

/// Who holds it, for how long still, and how far this process is in the queue; in one line.
std::string holder_line(const LeaseInfo&, std::string_view waiter);

/// "host:pid", as the library calls this process where it holds or waits.
std::string this_process();

/// Tells, while it lives, whom a long wait is for: on a terminal a line redrawn each second, else a line after 5 s
/// (after 1 s if the server cannot be asked) and then each minute, on stderr. Nothing with --quiet.
class Progress {
 public:
  Progress(const Context&, Client&, const LeaseKey&);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void tell(bool only_trouble);

  const Screen screen_;
  Client& client_;
  const LeaseKey key_;
  bool drawn_{false};
  std::jthread teller_;
};

}  // namespace redlease::cli
