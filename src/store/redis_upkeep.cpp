#include "store/redis_upkeep.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "concat.hpp"
#include "store/redis_calls.hpp"
#include "store/release_call.hpp"
#include "store/scripts.hpp"
#include "thread.hpp"
#include "wire/open_connection.hpp"

namespace redlease {
inline namespace v0 {

namespace {

// What may be on its way at once. It fits into the socket's buffer, so that a server which does not read never makes
// flush() wait.
constexpr std::size_t most_on_the_way = std::size_t{96} * 1024;

constexpr Millis longest_pause{250};

}  // namespace

RedisUpkeep::RedisUpkeep(Endpoint endpoint, std::shared_ptr<Observer> observer, const Clock& clock)
    : endpoint_(std::move(endpoint)), observer_(std::move(observer)), clock_(clock) {}

bool RedisUpkeep::ready(LeaseClock::duration limit) {
  if (pipe_ && !pipe_->sent.empty() && now_ >= pipe_->sent.front().limit) {
    // It may be dead without a word: what is due goes out on a new connection, and this one may still answer.
    if (slow_) slow_->lose(*this);
    slow_ = std::exchange(pipe_, std::nullopt);
  }
  if (!pipe_ && slow_ && slow_->sent.empty()) pipe_ = std::exchange(slow_, std::nullopt);  // it has answered all
  wanted_ = !pipe_;
  if (wanted_) connect(limit);
  return pipe_ && pipe_->size + frame_.size() < most_on_the_way;
}

void RedisUpkeep::connect(LeaseClock::duration limit) {
  const Deadline now = LeaseClock::now();
  if (connecting_) {
    // Whoever began it may have more time than those who wait now: they are better off with another.
    if (cut_short_) return;
    enough_at_ = deadline_after(dialled_at_, limit);
    if (now < enough_at_) return;
    cut_short_ = true;
    connector_.request_stop();
    return;
  }
  if (now < connect_at_) return;
  cut_short_ = false;
  dialled_at_ = now;
  enough_at_ = deadline_after(now, limit);
  try {
    connector_ = start_thread("redlease-dial", [this, limit](const std::stop_token& stop) { dial(limit, stop); });
  } catch (const std::system_error& error) {
    opened({{Errc::connect_failed, concat({"no thread to connect to ", endpoint_.display, " on: ", error.what()})}});
  }
  connecting_ = true;  // behind all that throws
}

void RedisUpkeep::dial(LeaseClock::duration limit, const std::stop_token& stop) noexcept {
  try {
    opened(open_connection(endpoint_, observer_.get(), {deadline_in(limit), stop}));
  } catch (const std::bad_alloc&) {
    opened({{Errc::connect_failed, {}}});
  }
}

void RedisUpkeep::opened(Result<std::unique_ptr<Connection>> result) {
  {
    const MutexLock lock(mutex_);
    opened_.emplace(std::move(result));
  }
  wake();
}

void RedisUpkeep::take_opened(News& news) {
  std::optional<Result<std::unique_ptr<Connection>>> opened;
  {
    const MutexLock lock(mutex_);
    opened.swap(opened_);
  }
  if (!opened) return;
  connecting_ = false;
  if (opened->has_value()) {
    pause_ = {};
    if (!pipe_) pipe_.emplace(std::move(opened->value()));
    return;
  }
  pause_ = std::min<LeaseClock::duration>(std::max<LeaseClock::duration>(pause_ * 2, Millis(5)), longest_pause);
  connect_at_ = deadline_in(pause_);
  news.no_connection = opened->error();
}

void RedisUpkeep::add(const Task& task) {
  const std::size_t before = frame_.size();
  const auto append = [&](const ScriptCall& call) {
    if (known(task.verb) == Known::no) {
      append_eval(frame_, call);  // the server knows it for those that follow
      known(task.verb) = Known::asked;
    } else {
      append_evalsha(frame_, call);
    }
  };
  try {
    if (task.verb == Verb::renew) {
      const Decimal ttl(task.ttl.count());
      const std::array<std::string_view, 3> words{task.key, task.token, ttl};
      append({Scripts::renew, 1, words});
    } else {
      append(ReleaseCall(task.key, task.token, task.place));
    }
    added_.push_back({.ticket = task.ticket,
                      .op_timeout = task.op_timeout,
                      .number = task.number,
                      .size = static_cast<std::uint32_t>(frame_.size() - before),
                      .verb = task.verb});
  } catch (const std::bad_alloc&) {
    frame_.resize(before);  // what stands there without a note would shift all answers behind it
    throw;
  }
}

void RedisUpkeep::flush(const Limits& limits) {
  if (added_.empty()) return;
  const Deadline at = clock_.now();
  const Deadline now = LeaseClock::now();
  for (Sent& sent : added_) {
    sent.at = at;
    sent.limit = deadline_after(now, sent.op_timeout);
    next_limit_ = std::min(next_limit_, sent.limit);
  }
  pipe_->sent.insert(pipe_->sent.end(), added_.begin(), added_.end());  // all or none
  for (const Sent& sent : added_) pipe_->size += sent.size;
  const bool left = pipe_->connection->send(frame_, limits, added_.size());
  added_.clear();
  frame_.clear();
  if (!left) {
    pipe_->lose(*this);
    pipe_.reset();
  }
}

void RedisUpkeep::wait(Deadline until, News& news) {
  take_opened(news);
  if (answers_.empty() && !news.no_connection) {
    std::array<pollfd, 3> polled{pollfd{bell_.descriptor(), POLLIN, 0},
                                 pollfd{pipe_ ? pipe_->connection->descriptor() : -1, POLLIN, 0},
                                 pollfd{slow_ ? slow_->connection->descriptor() : -1, POLLIN, 0}};
    until = std::min(until, next_limit_);
    if (wanted_ && !connecting_) until = std::min(until, connect_at_);
    if (wanted_ && connecting_ && !cut_short_) until = std::min(until, enough_at_);
    wanted_ = false;                         // unless somebody asks again
    const Deadline now = LeaseClock::now();  // `until` may be before all time
    const auto left = std::min<LeaseClock::duration>(std::max(until, now) - now, Millis(1'000));
    const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    ::ppoll(polled.data(), polled.size(), &timeout, nullptr);
    if (polled[0].revents != 0) bell_.silence();
    for (auto* pipe : {&pipe_, &slow_}) {
      if (*pipe && !(*pipe)->read(*this)) pipe->reset();
    }
    take_opened(news);
  }
  now_ = LeaseClock::now();
  if (now_ >= next_limit_) tell_late();
  news.answers.swap(answers_);
  answers_.clear();
}

void RedisUpkeep::tell_late() {
  std::shared_ptr<const Error> error;
  next_limit_ = Deadline::max();
  for (auto* pipe : {&pipe_, &slow_}) {
    if (!*pipe) continue;
    for (Sent& sent : (*pipe)->sent) {
      if (sent.late) continue;
      if (sent.limit > now_) {
        next_limit_ = std::min(next_limit_, sent.limit);
        continue;
      }
      if (!error) {
        error = std::make_shared<const Error>(
            Error{Errc::unknown_outcome, concat({endpoint_.display, " did not answer within the limit, and may yet"})});
      }
      sent.late = true;
      answers_.push_back({.ticket = sent.ticket, .number = sent.number, .said = Said::late, .error = error});
    }
  }
}

bool RedisUpkeep::Pipe::read(RedisUpkeep& upkeep) {
  if (sent.empty()) return connection->quiet();
  while (connection->next_owed() != nullptr) {
    const Sent answered = sent.front();
    sent.pop_front();  // before anything can throw: the next reply must not be taken for this one's
    size -= answered.size;
    upkeep.answers_.push_back(upkeep.answer_to(answered, *connection));
  }
  if (connection->dead()) lose(upkeep);
  return !connection->dead();
}

void RedisUpkeep::Pipe::lose(RedisUpkeep& upkeep) {
  for (Known& script : upkeep.known_) {
    if (script == Known::asked) script = Known::no;
  }
  if (sent.empty()) return;
  Error why = connection->dead() ? connection->error() : Error{};
  if (!why.code) why.detail = concat({upkeep.endpoint_.display, " did not answer within the limit"});
  why.code = Errc::unknown_outcome;
  why.detail += ". The request left and no answer came: it may have been executed";
  const auto error = std::make_shared<const Error>(std::move(why));
  for (const Sent& each : sent) {
    upkeep.answers_.push_back({.ticket = each.ticket, .number = each.number, .said = Said::unknown, .error = error});
  }
  sent.clear();
  size = 0;
}

Upkeep::Answer RedisUpkeep::answer_to(const Sent& sent, const Connection& connection) {
  Answer answer{.ticket = sent.ticket, .number = sent.number, .said = Said::unknown, .sent = sent.at};
  Known& script = known(sent.verb);
  if (is_release_answer(connection.reply())) {
    if (script == Known::asked) script = Known::yes;
    answer.said = connection.reply().integer >= 1 ? Said::done : Said::not_ours;
    answer.cause = cause_of(connection.reply().integer);
    return answer;
  }
  if (needs_eval(connection.reply())) {
    if (script == Known::yes) script = Known::no;
    answer.said = Said::again;
    return answer;
  }
  if (script == Known::asked) script = Known::no;
  ScriptAnswer judged;
  judged.delivery = Delivery::answered;
  judge(judged, connection);
  if (judged.reply != nullptr) not_understood(judged, connection);
  if (judged.error.code == Errc::not_a_lease) {
    answer.said = Said::not_ours;
    answer.cause = LossCause::taken;  // something else is at the key
    return answer;
  }
  if (judged.delivery == Delivery::not_executed) answer.said = Said::unavailable;
  if (judged.delivery == Delivery::in_doubt) judged.error.code = Errc::unknown_outcome;
  answer.error = std::make_shared<const Error>(std::move(judged.error));
  return answer;
}

}  // namespace v0
}  // namespace redlease
