#pragma once
// What the tests of waiting under faults stand on.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "promise_support.hpp"
#include "support/children.hpp"
#include "support/shared_page.hpp"

namespace redlease::testing_support {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr Millis at_once{75};
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr Millis at_once{75};
#else
inline constexpr Millis at_once{50};
#endif
#else
inline constexpr Millis at_once{50};
#endif

inline std::string seen_of(const std::string& key) { return key + ":{" + key + "}lease:seen"; }

// What holders know of each other, in memory that is shared with the children: until when the one inside takes himself
// for the holder. Whoever enters while that time has not come has found another holder. The time of one that was killed
// or paused inside passes by itself.
class Room {
 public:
  // Whether the lease was still held when it came in.
  bool enter(const Lease& lease) { return enter(lease.deadline(), fence_of(lease)); }
  bool enter(Deadline until, std::uint64_t fence) {
    const std::int64_t other = cell(inside).exchange(ticks(until));
    const std::int64_t last = cell(last_fence);
    const Deadline now = LeaseClock::now();  // after the readings: had another come in time, ours would be over
    if (now >= until) return false;
    if (other > ticks(now)) ++cell(overlap_count);
    if (fence == 0) return true;  // of another library
    if (static_cast<std::int64_t>(fence) <= last) ++cell(regression_count);
    cell(last_fence) = static_cast<std::int64_t>(fence);
    ++cell(entry_count);
    return true;
  }
  void leave(Deadline until) {
    std::int64_t mine = ticks(until);
    cell(inside).compare_exchange_strong(mine, 0);
  }

  std::int64_t overlaps() { return cell(overlap_count); }
  std::int64_t regressions() { return cell(regression_count); }
  std::int64_t entries() { return cell(entry_count); }
  // For whatever a test wants to share with its children.
  std::atomic<std::int64_t>& operator[](std::size_t index) { return cell(own + index); }
  static constexpr std::size_t cells = SharedPage::counters - 5;

  static std::int64_t ticks(Deadline at) { return at.time_since_epoch().count(); }
  static Deadline at(std::int64_t ticks) { return Deadline(LeaseClock::duration(ticks)); }

 private:
  enum : std::size_t { inside, last_fence, overlap_count, regression_count, entry_count, own };
  std::atomic<std::int64_t>& cell(std::size_t index) { return page_.counter(index); }
  SharedPage page_;
};

// One stay: in, for as long as `work`, out, and the release. Whether it was held when it came in.
inline bool stay(Room& room, Lease lease, LeaseClock::duration work = {}) {
  const Deadline until = lease.deadline();
  const bool in = room.enter(lease);
  const Deadline end = std::min(until, deadline_after(LeaseClock::now(), work));
  while (in && LeaseClock::now() < end) std::this_thread::sleep_for(std::chrono::microseconds(50));
  room.leave(until);
  (void)lease.release();
  return in;
}

// A server of its own, its truth, and what must be left on it in the end.
class QueueFaults : public ::testing::Test {
 protected:
  explicit QueueFaults(std::vector<std::string> config = {}) : server(std::move(config)) {}

  long long queued() { return raw.command({"ZCARD", queue_of(key)}).integer; }
  bool await_queued(long long count, Millis limit = 10s) {
    return eventually([&] { return queued() == count; }, limit);
  }
  // Kills the connections of this name and type (normal, pubsub); how many.
  int kill_named(const std::string& name, const std::string& type) {
    std::istringstream lines(raw.command({"CLIENT", "LIST", "TYPE", type}).text);
    int killed = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.find(" name=" + name + " ") == line.npos) continue;
      const std::string id = line.substr(3, line.find(' ') - 3);
      killed += static_cast<int>(raw.command({"CLIENT", "KILL", "ID", id}).integer);
    }
    return killed;
  }
  std::size_t channels() { return raw.command({"PUBSUB", "CHANNELS", "redlease:inbox:*"}).elements.size(); }

  void expect_exclusion() {
    EXPECT_EQ(room.overlaps(), 0) << "two holders at once";
    EXPECT_EQ(room.regressions(), 0) << "a fence did not grow";
  }

  // Once those who waited are gone. `limit`: what may be left stands for so long.
  void expect_nothing_left(Millis limit) {
    EXPECT_TRUE(eventually([&] { return !raw.exists(key); }, limit)) << "held by " << raw.get(key).value_or("?");
    EXPECT_TRUE(eventually([&] { return channels() == 0; }, 2s)) << channels() << " channels";
    for (const std::string& left : raw.keys()) EXPECT_NE(raw.pttl(left), -1) << left << " never expires";
  }
  void expect_no_queue(Millis limit = 2s) {
    EXPECT_TRUE(eventually([&] { return queued() == 0; }, limit)) << queued() << " entries";
  }

  RedisServer server;
  RawClient raw{server.unix_socket()};
  const std::string key{"turn"};
  Room room;
};

// Threads that take turns, each with a seat, until the crew is gone or its time is over.
class Crew {
 public:
  using Turn = std::function<void(int seat)>;

  Crew(int count, const Turn& turn) : turns_(static_cast<std::size_t>(count)) {
    for (int seat = 0; seat < count; ++seat) {
      threads_.emplace_back([this, seat, turn] {
        while (!over_) {
          turn(seat);
          ++turns_[static_cast<std::size_t>(seat)];
        }
      });
    }
  }
  ~Crew() { end(); }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  void end() {
    over_ = true;
    threads_.clear();
  }
  int least() const { return *std::min_element(turns_.begin(), turns_.end()); }
  int most() const { return *std::max_element(turns_.begin(), turns_.end()); }

 private:
  std::atomic<bool> over_{false};
  std::vector<std::atomic<int>> turns_;
  std::vector<std::jthread> threads_;
};

inline LeaseOptions patient_for(Millis ttl, Millis wait, std::optional<Millis> op_timeout = {}) {
  return {.ttl = ttl, .wait = wait, .op_timeout = op_timeout};
}

inline Millis since(Deadline begun) { return std::chrono::duration_cast<Millis>(LeaseClock::now() - begun); }

}  // namespace redlease::testing_support
