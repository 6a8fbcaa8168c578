#pragma once
// Processes that contend for one lease, and a parent that does them harm.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "redlease/client.hpp"
#include "support/children.hpp"
#include "support/shared_page.hpp"
#include "support/sockets.hpp"

namespace redlease {
inline namespace v0 {

/// What the contenders know of each other, in shared memory.
///
/// In his seat a holder writes until when he takes himself for the holder, before he first looks at held(), and clears
/// it before the release leaves. So whoever holds the lease and finds another's time there that is not over has found
/// two holders. That is fair to those who were paused or killed inside: their time passes by itself.
class Board {
 public:
  static constexpr int seats = 16;
  enum Count : std::size_t {
    over,             ///< not 0: go home
    busy,             ///< answers
    unknown,          ///< outcomes
    unavailable,      ///< outcomes
    overlaps,         ///< two holders
    robbed,           ///< a renewal or release found the lease lost before its deadline
    refused_late,     ///< stale writes, of somebody whose deadline had passed
    refused_in_time,  ///< writes of somebody who held the lease
    how_many
  };

  std::int64_t count(Count which) { return cell(which); }
  void add(Count which) { ++cell(which); }
  std::int64_t done(int seat) { return page_.counter(done_at + std::size_t(seat)); }
  void add_done(int seat) { ++page_.counter(done_at + std::size_t(seat)); }
  std::int64_t least_done(int contenders);

  void enter(int seat, Deadline until);
  void still_inside(int seat, Deadline until) { time_of(seat) = until.time_since_epoch().count(); }
  void leave(int seat);
  bool inside(int seat) { return time_of(seat) > LeaseClock::now().time_since_epoch().count(); }

  SharedPage& page() { return page_; }

 private:
  static constexpr std::size_t times_at = how_many;
  static constexpr std::size_t done_at = times_at + seats;
  static_assert(done_at + seats <= SharedPage::counters);

  std::atomic<std::int64_t>& cell(Count which) { return page_.counter(which); }
  std::atomic<std::int64_t>& time_of(int seat) { return page_.counter(times_at + std::size_t(seat)); }

  SharedPage page_;
};

struct Terms {
  std::string key{"contest"};
  std::string resource{};  ///< what is written under the lease by fenced_set; empty: nothing
  Millis ttl{60};
  Millis op_timeout{20};
};

/// Contends until the board says that it is over.
void contend(const std::string& url, const Terms&, Board&, int seat);

/// The same as another library would: SET NX PX and compare-and-delete, on hiredis.
void contend_in_plain_redis(const ServerAddress&, const Terms&, Board&, int seat);

/// The processes, one for each seat.
class Contest {
 public:
  /// `contender` is run in the process of each seat.
  Contest(int contenders, std::function<void(int seat)> contender);

  /// Stops somebody inside for a random time up to `longest`. How long; 0 if he had left before he stood.
  Millis pause_inside(Board&, Millis longest);
  /// Kills somebody inside and puts another in his seat. Whether he really was inside.
  bool kill_inside(Board&);
  /// Before it is over nobody should.
  bool anyone_ended() const;
  /// The exit statuses that are not 0, as a text.
  std::string finish(Board&);

 private:
  int await_somebody_inside(Board&);
  void seat(int which);

  std::function<void(int)> contender_;
  std::vector<std::unique_ptr<Children>> processes_;
  std::minstd_rand random_{17};
};

/// How many sections a process makes in the longest of the tests: 1,000, or REDLEASE_SOAK_SECTIONS if that is set.
int sections();
/// How long a test may take at most.
inline Millis patience() { return Millis(300) * std::max(sections(), 1'000); }

}  // namespace v0
}  // namespace redlease
