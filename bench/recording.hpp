#pragma once
// What the library itself sends, as the server saw it, to be sent again without the library.
#include <functional>
#include <string>
#include <vector>

#include "raw.hpp"

namespace bench {

class Recording {
 public:
  // Runs the cycle so many times under MONITOR. Every cycle must send the same number of commands; nobody else may use
  // the server meanwhile. The not-after of acquires is moved an hour on: later the server would refuse them as late.
  static Recording of(const std::string& url, int cycles, const std::function<void()>& cycle);

  // The next recorded cycle, one command after the other.
  void replay(Raw&);

  // Many cycles in one write.
  void replay_at_once(Raw&, int cycles);

  std::size_t commands_per_cycle() const noexcept { return cycles_.front().size(); }

 private:
  const std::vector<std::string>& next() noexcept;

  std::vector<std::vector<std::string>> cycles_;  // frames
  std::size_t at_{0};
};

}  // namespace bench
