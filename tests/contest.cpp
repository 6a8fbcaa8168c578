#include "contest.hpp"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <thread>

#include "redlease/fenced.hpp"
#include "support/sleepless.hpp"

namespace redlease {
inline namespace v0 {
namespace {

using std::chrono::microseconds;

constexpr microseconds longest_work{150};
constexpr microseconds longest_rest{1'500};

class Dice {
 public:
  explicit Dice(int seat) : random_(static_cast<unsigned>(seat * 1'000'003 + ::getpid())) {}
  bool one_in(unsigned n) { return random_() % n == 0; }
  microseconds up_to(microseconds most) {
    return microseconds(std::uniform_int_distribution<microseconds::rep>(0, most.count())(random_));
  }

 private:
  std::minstd_rand random_;
};

class Contender {
 public:
  Contender(const std::string& url, const Terms& terms, Board& board, int seat)
      : terms_(terms), board_(board), seat_(seat), dice_(seat), client_(url) {}

  void run() {
    while (board_.count(Board::over) == 0) try_once();
  }

 private:
  void try_once() {
    LeaseOptions options{.ttl = terms_.ttl, .op_timeout = terms_.op_timeout};
    if (dice_.one_in(8)) options.wait = Millis(20);
    client_.acquire(terms_.key, options)
        .match([this](Lease lease) { hold(lease); },
               [this](const Busy&) {
                 board_.add(Board::busy);
                 std::this_thread::sleep_for(dice_.up_to(longest_rest));
               },
               [this](Claim claim) {
                 board_.add(Board::unknown);
                 settle(std::move(claim));
               },
               [this](const Unavailable&) { board_.add(Board::unavailable); });
  }

  // Each of the cures in turn; to drop it is one as well.
  void settle(Claim claim) {
    if (dice_.one_in(3)) {
      (void)std::move(claim).withdraw(deadline_in(terms_.op_timeout));
    } else if (dice_.one_in(2)) {
      auto lease = std::move(claim).retry(deadline_in(terms_.op_timeout)).lease();
      if (lease) hold(*lease);
    }
  }

  void hold(Lease& lease) {
    board_.enter(seat_, lease.deadline());
    const bool was_held = lease.held();
    if (was_held) {
      board_.page().enter();
      work(lease);
      if (dice_.one_in(4)) renew(lease);
      write(lease);
      work(lease);
      board_.page().leave();
    }
    board_.leave(seat_);
    const Deadline until = lease.deadline();
    const bool ours = lease.held();
    const ReleaseOutcome outcome = lease.release();
    if (ours && outcome == ReleaseOutcome::not_held && LeaseClock::now() < until) board_.add(Board::robbed);
    if (was_held) board_.add_done(seat_);
  }

  void work(const Lease& lease) {
    const Deadline end = deadline_in(dice_.up_to(longest_work));
    while (LeaseClock::now() < end && lease.held()) {
    }
  }

  void renew(Lease& lease) {
    const Deadline until = lease.deadline();
    const RenewOutcome outcome = lease.renew();
    if (outcome == RenewOutcome::renewed) board_.still_inside(seat_, lease.deadline());
    if (outcome == RenewOutcome::lost && LeaseClock::now() < until) board_.add(Board::robbed);
  }

  void write(const Lease& lease) {
    if (terms_.resource.empty()) return;
    const Deadline until = lease.deadline();
    const auto answer = fenced_set(client_, terms_.resource, lease.token().str(), *lease.fencing_token());
    if (!answer.has_value() || answer.value().accepted) return;
    board_.add(lease.held() && LeaseClock::now() < until ? Board::refused_in_time : Board::refused_late);
  }

  const Terms& terms_;
  Board& board_;
  const int seat_;
  Dice dice_;
  Client client_;
};

class PlainRedis {
 public:
  explicit PlainRedis(const ServerAddress& server)
      : context_(
            server.path.empty() ? ::redisConnect("127.0.0.1", server.port) : ::redisConnectUnix(server.path.c_str()),
            ::redisFree) {
    if (!context_ || context_->err != 0) throw std::runtime_error("plain hiredis could not connect");
  }

  template <class... Args>
  bool says_yes(const char* format, Args... args) {
    const std::unique_ptr<redisReply, decltype(&::freeReplyObject)> reply(
        static_cast<redisReply*>(::redisCommand(context_.get(), format, args...)), ::freeReplyObject);
    if (!reply) throw std::runtime_error(std::string("plain hiredis: ") + context_->errstr);
    if (reply->type == REDIS_REPLY_ERROR) throw std::runtime_error(std::string("plain hiredis: ") + reply->str);
    return reply->type == REDIS_REPLY_STATUS || (reply->type == REDIS_REPLY_INTEGER && reply->integer == 1);
  }

 private:
  std::unique_ptr<redisContext, decltype(&::redisFree)> context_;
};

}  // namespace

std::int64_t Board::least_done(int contenders) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int seat = 0; seat < contenders; ++seat) least = std::min(least, done(seat));
  return least;
}

void Board::enter(int seat, Deadline until) {
  still_inside(seat, until);
  for (int other = 0; other < seats; ++other) {
    if (other == seat) continue;
    const std::int64_t others = time_of(other);
    // After the reading: had his time only come now, ours would be over.
    const Deadline now = LeaseClock::now();
    if (now < until && others > now.time_since_epoch().count()) add(overlaps);
  }
}

void Board::leave(int seat) { time_of(seat) = 0; }

void contend(const std::string& url, const Terms& terms, Board& board, int seat) {
  Contender(url, terms, board, seat).run();
}

void contend_in_plain_redis(const ServerAddress& server, const Terms& terms, Board& board, int seat) {
  PlainRedis redis(server);
  Dice dice(seat);
  const long long ttl = terms.ttl.count();
  for (int i = 0; board.count(Board::over) == 0; ++i) {
    const std::string token = "plain-" + std::to_string(::getpid()) + "-" + std::to_string(i);
    const Deadline until = deadline_in(terms.ttl - Millis(2) - terms.ttl / 100);
    if (!redis.says_yes("SET %s %s NX PX %lld", terms.key.c_str(), token.c_str(), ttl)) {
      board.add(Board::busy);
      std::this_thread::sleep_for(dice.up_to(longest_rest));
      continue;
    }
    board.enter(seat, until);
    const bool was_held = LeaseClock::now() < until;
    if (was_held) {
      board.page().enter();
      const Deadline end = std::min(until, deadline_in(dice.up_to(longest_work)));
      while (LeaseClock::now() < end) {
      }
      board.page().leave();
    }
    board.leave(seat);
    const bool deleted = redis.says_yes(
        "EVAL %s 1 %s %s", "if redis.call('GET',KEYS[1])==ARGV[1] then return redis.call('DEL',KEYS[1]) end return 0",
        terms.key.c_str(), token.c_str());
    if (!deleted && LeaseClock::now() < until) board.add(Board::robbed);
    if (was_held) board.add_done(seat);
  }
}

Contest::Contest(int contenders, std::function<void(int)> contender)
    : contender_(std::move(contender)), processes_(static_cast<std::size_t>(contenders)) {
  for (int which = 0; which < contenders; ++which) seat(which);
}

void Contest::seat(int which) {
  processes_[static_cast<std::size_t>(which)] =
      std::make_unique<Children>(1, [this, which](int) { contender_(which); });
}

int Contest::await_somebody_inside(Board& board) {
  int found = -1;
  const bool somebody = eventually([&] {
    const auto first = static_cast<int>(random_() % processes_.size());
    for (int i = 0; i < static_cast<int>(processes_.size()) && found < 0; ++i) {
      const int which = (first + i) % static_cast<int>(processes_.size());
      if (board.inside(which)) found = which;
    }
    return found >= 0;
  });
  if (!somebody) throw std::runtime_error("nobody came in for seconds");
  return found;
}

Millis Contest::pause_inside(Board& board, Millis longest) {
  const int which = await_somebody_inside(board);
  const pid_t pid = processes_[static_cast<std::size_t>(which)]->pid(0);
  ::kill(pid, SIGSTOP);
  siginfo_t state{};
  if (::waitid(P_PID, static_cast<id_t>(pid), &state, WSTOPPED | WEXITED | WNOWAIT) != 0) throw_errno("waitid");
  const bool inside = board.inside(which);
  const Millis length(std::uniform_int_distribution<Millis::rep>(1, longest.count())(random_));
  std::this_thread::sleep_for(length);
  ::kill(pid, SIGCONT);
  return inside ? length : Millis(0);
}

bool Contest::kill_inside(Board& board) {
  const int which = await_somebody_inside(board);
  processes_[static_cast<std::size_t>(which)]->kill9(0);
  const bool inside = board.inside(which);
  seat(which);
  return inside;
}

bool Contest::anyone_ended() const {
  return std::any_of(processes_.begin(), processes_.end(), [](const auto& process) {
    siginfo_t state{};
    ::waitid(P_PID, static_cast<id_t>(process->pid(0)), &state, WEXITED | WNOHANG | WNOWAIT);
    return state.si_pid != 0;
  });
}

std::string Contest::finish(Board& board) {
  board.add(Board::over);
  std::string failures;
  for (std::size_t which = 0; which < processes_.size(); ++which) {
    const int status = processes_[which]->wait()[0];
    if (status != 0) failures += "the process in seat " + std::to_string(which) + ": " + std::to_string(status) + "; ";
  }
  return failures;
}

int sections() {
  const char* wanted = std::getenv("REDLEASE_SOAK_SECTIONS");
  return wanted != nullptr ? std::stoi(wanted) : 1'000;
}

}  // namespace v0
}  // namespace redlease
