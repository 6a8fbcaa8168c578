#pragma once
#include <sys/types.h>

namespace redlease::cli {

/// The terminal of this session, if it has one, which belongs to one process group at a time: that one may read from it
/// and gets Ctrl-C and Ctrl-Z. Whoever moves it must have SIGTTOU blocked.
class Terminal {
 public:
  Terminal();
  ~Terminal();  ///< takes it back
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool exists() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  /// Whether it belongs to this process's own group, as for a job in the foreground.
  bool ours() const;
  bool belongs_to(pid_t group) const;
  /// Whether stdin and stdout are a terminal and it is ours. Otherwise others of our group may need it: `run … | less`.
  bool for_us_alone() const;

  void give(pid_t group);
  /// If it was given.
  void take_back();
  /// A shell has taken it meanwhile, or not: what was given is known anew.
  void look_again(pid_t group) { given_ = belongs_to(group); }

 private:
  int descriptor_;
  bool given_{false};
};

}  // namespace redlease::cli
