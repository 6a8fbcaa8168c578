#include "crew.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <exception>
#include <iostream>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "measure.hpp"

namespace bench {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t most_waiters = 2'048;
constexpr std::size_t most_gaps = 16'384;  // a second has at most a thousand
constexpr auto patience = 15s;

using Time = std::atomic<double>;
static_assert(Time::is_always_lock_free && std::atomic<std::size_t>::is_always_lock_free, "processes share them");

// One waiter's; a cache line of its own.
struct alignas(64) Post {
  Time since{0};  // when it began to wait; 0: it does not
  Time longest{0};
  std::atomic<std::size_t> acquired{0};
};

}  // namespace

// In memory that all processes see.
struct Crew::Board {
  std::atomic<bool> opened{false}, over{false}, failed{false};
  std::atomic<std::size_t> arrived{0}, passes{0};
  Time begun{0}, passed_at{0};
  std::array<Time, most_gaps> gaps{};
  std::array<Post, most_waiters> posts{};

  void keep(Post& mine, Waiter& waiter);
  void tell(const std::exception&);
};

void Crew::Board::keep(Post& mine, Waiter& waiter) {
  mine.since = now_us();
  ++arrived;
  while (!over) {
    mine.since = now_us();
    if (!waiter.take()) return;
    const double now = now_us();
    const std::size_t pass = passes.fetch_add(1);
    if (pass < most_gaps) gaps[pass] = now - passed_at;
    mine.longest = std::max(mine.longest.load(), now - std::max(mine.since.load(), begun.load()));
    mine.since = 0;
    ++mine.acquired;
    std::this_thread::sleep_for(hold);
    passed_at = now_us();
    waiter.pass();
  }
}

void Crew::Board::tell(const std::exception& e) {
  if (!failed.exchange(true)) std::cerr << e.what() << std::endl;
}

// Given once, seen by all processes at once and at no cost to anybody meanwhile: the end of a pipe.
class Crew::Signal {
 public:
  Signal() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::system_category(), "no pipe");
  }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  ~Signal() {
    give();
    ::close(ends_[0]);
  }
  // In a child this says that it is not the one to give it.
  void give() noexcept {
    if (ends_[1] >= 0) ::close(std::exchange(ends_[1], -1));
  }
  void wait() const noexcept {
    char nothing{};
    while (::read(ends_[0], &nothing, 1) < 0 && errno == EINTR) {
    }
  }

 private:
  std::array<int, 2> ends_{};
};

void Crew::Unmap::operator()(Board* board) const noexcept { ::munmap(board, sizeof *board); }

Crew::Crew(Work work, std::size_t waiters, std::size_t processes)
    : work_(std::move(work)), waiters_(waiters), processes_(processes) {
  if (waiters > most_waiters) throw std::invalid_argument("too many waiters");
  void* memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::system_category(), "no memory to share");
  board_.reset(new (memory) Board);
  go_ = std::make_unique<Signal>();
  stop_ = std::make_unique<Signal>();
  if (work_.prepare) work_.prepare();
  try {
    start(0);
    until([&] { return board_->opened.load(); }, "nobody could begin");
    for (std::size_t i = 1; i < processes_; ++i) start(i);
    until([&] { return board_->arrived == waiters_; }, "not all waiters came");
  } catch (...) {
    abandon();
    throw;
  }
}

Crew::~Crew() { abandon(); }

void Crew::abandon() noexcept {
  for (const pid_t child : std::exchange(children_, {})) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
}

void Crew::start(std::size_t process) {
  std::cout.flush();
  const pid_t child = ::fork();
  if (child < 0) throw std::system_error(errno, std::system_category(), "no more processes");
  if (child > 0) {
    children_.push_back(child);
    return;
  }
  run(process);
}

void Crew::run(std::size_t process) noexcept {
  Board& board = *board_;
  std::unique_ptr<Team> team;
  std::unique_ptr<Waiter> opener;
  std::stop_source stop;
  std::vector<std::thread> threads;
  try {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // else some would wait for ever for a token
    go_->give();
    stop_->give();
    team = work_.team();
    if (process == 0) {
      opener = team->opener();
      if (!opener->take()) throw std::runtime_error("what nobody has could not be had");
      board.opened = true;
    }
    for (std::size_t i = process; i < waiters_; i += processes_) {
      threads.emplace_back([&, i] {
        try {
          board.keep(board.posts.at(i), *team->waiter(stop.get_token()));
        } catch (const std::exception& e) {
          board.tell(e);
        }
      });
    }
    if (opener) {
      go_->wait();
      board.passed_at = now_us();
      opener->pass();
    }
    stop_->wait();
    stop.request_stop();
    for (std::thread& thread : threads) thread.join();
    opener.reset();
    team.reset();
    ::_exit(0);
  } catch (const std::exception& e) {
    board.tell(e);
    ::_exit(1);  // with threads that nobody would wake
  }
}

void Crew::begin() {
  board_->begun = now_us();
  go_->give();
}

Seen Crew::so_far() const {
  check();
  const double now = now_us();
  const double begun = board_->begun;
  Seen seen{.passes = static_cast<double>(board_->passes), .elapsed = now - begun};
  std::vector<double> gaps(
      board_->gaps.begin(),
      board_->gaps.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(board_->passes, most_gaps)));
  seen.gap_p50 = gaps.empty() ? seen.elapsed : median(std::move(gaps));
  const auto posts = std::span(board_->posts).first(waiters_);
  seen.fewest = seen.most = static_cast<double>(posts.front().acquired);
  for (const Post& post : posts) {
    const double since = post.since;
    seen.longest = std::max({seen.longest, post.longest.load(), since > 0 ? now - std::max(since, begun) : 0});
    seen.fewest = std::min(seen.fewest, static_cast<double>(post.acquired));
    seen.most = std::max(seen.most, static_cast<double>(post.acquired));
  }
  return seen;
}

void Crew::end() {
  board_->over = true;
  go_->give();
  stop_->give();
  if (work_.wake) work_.wake(waiters_);
  until(
      [&] {
        std::erase_if(children_, [](pid_t child) { return ::waitpid(child, nullptr, WNOHANG) == child; });
        return children_.empty();
      },
      "not all waiters came to an end");
  check();
}

void Crew::check() const {
  if (board_->failed) throw std::runtime_error("a waiter could not go on");
}

void Crew::until(const std::function<bool()>& met, const char* otherwise) const {
  const auto limit = std::chrono::steady_clock::now() + patience;
  while (!met()) {
    check();
    if (std::chrono::steady_clock::now() > limit) throw std::runtime_error(otherwise);
    std::this_thread::sleep_for(1ms);
  }
}

}  // namespace bench
