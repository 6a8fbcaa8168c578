#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "redlease/lease_info.hpp"

namespace redlease::cli {

/// A time in which somebody held a key or waited for it. Times count from the beginning of the trace.
struct Span {
  bool held{};  ///< else waited
  Millis from{}, to{};
  FencingToken fence{};  ///< of held; 0: a holder that is not ours
  bool began_before{};   ///< the trace
  bool goes_on{};        ///< when the trace ended
  bool expired{};        ///< of held: its time was over
};

/// One participant's spans, in order, none over another: one that does several things at once has several lanes.
struct Lane {
  std::string who;  ///< "host:pid label"
  std::vector<Span> spans;
};

struct KeyTimeline {
  std::string key;
  std::vector<Lane> lanes;
  std::vector<Millis> unseen;                     ///< by then at least one grant had come and gone without being seen
  std::vector<std::pair<Millis, Millis>> silent;  ///< when the server did not answer
};

struct Timeline {
  Millis length{};
  std::vector<KeyTimeline> keys;  ///< by name
};

/// Makes a timeline of looks at keys, as they come. What is shorter than the time between two looks can be missed;
/// since the server tells since when a grant and a wait last, beginnings are exact where they were seen at all, and
/// ends are known to within the time between two looks. The same looks give the same timeline.
class TimelineBuilder {
 public:
  /// Nothing: the server did not answer. Times of one key never go back.
  void see(const std::string& key, Millis at, const std::optional<LeaseInfo>&);
  Timeline finish(Millis length) const;

 private:
  struct Wait {
    std::string who;
    Millis arrival{};
    Span span;
  };
  struct Seen {                  // of one key
    std::optional<Millis> last;  // look that was answered
    LeaseInfo info;              // of that
    std::optional<std::pair<std::string, Span>> holder;
    Millis free_from{};  // no holder is to begin before this
    std::vector<Wait> waits;
    std::vector<std::pair<std::string, Span>> over;
    std::vector<Millis> unseen;
    std::vector<std::pair<Millis, Millis>> silent;
    bool is_silent{};
  };
  static void end_holder(Seen&, Millis at, const LeaseInfo&);
  static void end_waits(Seen&, Millis at, const LeaseInfo&);
  static KeyTimeline timeline_of(const std::string& key, Seen, Millis length);

  std::map<std::string, Seen> keys_;
};

}  // namespace redlease::cli
