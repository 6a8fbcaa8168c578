#pragma once
// Many who wait for one thing that one of them has at a time: in threads of one process or of several, for a set time.
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

namespace bench {

class Waiter {
 public:
  Waiter() = default;
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  virtual ~Waiter() = default;
  virtual bool take() = 0;  // waits for it; false if it ends without
  virtual void pass() = 0;  // gives it back
};

// What the waiters of one process share.
class Team {
 public:
  Team() = default;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  virtual ~Team() = default;
  virtual std::unique_ptr<Waiter> waiter(std::stop_token) = 0;
  virtual std::unique_ptr<Waiter> opener() { return waiter({}); }  // has it while the others gather
};

struct Work {
  std::function<std::unique_ptr<Team>()> team{};  // called in each process
  std::function<void()> prepare{};                // before anybody is there
  std::function<void(std::size_t)> wake{};        // at the end: so many may wait who hear of no stop
};

inline constexpr std::chrono::milliseconds hold{1};

// Times in µs.
struct Seen {
  double gap_p50{};         // from the call that passes it on to the next one's return
  double passes{};          // hand-offs
  double elapsed{};         // since the beginning
  double longest{};         // the longest wait, also of those who still wait
  double fewest{}, most{};  // acquisitions of a waiter
};

// The processes are made by fork, so that this one may have no threads. Whatever goes wrong is an exception, nothing
// goes on for long, and no process is left behind.
class Crew {
 public:
  // Returns when all are there and wait, or are about to.
  Crew(Work, std::size_t waiters, std::size_t processes);
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew();

  void begin();  // the opener passes it on
  Seen so_far() const;
  void end();

 private:
  struct Board;
  class Signal;
  struct Unmap {
    void operator()(Board*) const noexcept;
  };
  void start(std::size_t process);
  [[noreturn]] void run(std::size_t process) noexcept;
  void abandon() noexcept;
  void check() const;
  void until(const std::function<bool()>& met, const char* otherwise) const;

  const Work work_;
  const std::size_t waiters_, processes_;
  std::unique_ptr<Board, Unmap> board_;
  std::unique_ptr<Signal> go_, stop_;
  std::vector<pid_t> children_;
};

}  // namespace bench
