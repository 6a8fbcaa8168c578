#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>

#include "mutex.hpp"
#include "redlease/store/lease_store.hpp"
#include "redlease/store/upkeep.hpp"

namespace redlease {
inline namespace v0 {

namespace {

class PlainUpkeep final : public Upkeep {
 public:
  explicit PlainUpkeep(LeaseStore& store) : store_(store) {}

  bool ready(LeaseClock::duration) override { return true; }

  void add(const Task& task) override { tasks_.push_back({task, std::string(task.key), std::string(task.token)}); }

  void flush(const Limits& limits) override {
    for (const Owned& each : std::exchange(tasks_, {})) {
      try {
        answers_.push_back(carry_out(each, limits));
      } catch (...) {  // the store's own, or there is no memory: nobody knows how far it got
        answers_.push_back({.ticket = each.task.ticket,
                            .number = each.task.number,
                            .said = Said::unknown,
                            .error = std::make_shared<const Error>(Error{
                                Errc::unknown_outcome, "the store threw an exception, so it may have been done"})});
      }
    }
  }

  void wait(Deadline until, News& news) override {
    news.answers.swap(answers_);
    answers_.clear();
    const MutexLock lock(mutex_);
    if (news.answers.empty()) {
      while (!woken_) {
        const auto left = until - LeaseClock::now();
        if (left <= LeaseClock::duration::zero()) break;
        wake_.wait_for(mutex_, std::min<LeaseClock::duration>(left, Millis(1'000)));
      }
    }
    woken_ = false;
  }

  void wake() noexcept override {
    {
      const MutexLock lock(mutex_);
      woken_ = true;
    }
    wake_.notify_one();
  }

 private:
  struct Owned {
    Task task;
    std::string key, token;
  };

  Answer carry_out(const Owned& each, const Limits& limits) {
    const Task& task = each.task;
    Answer answer{.ticket = task.ticket, .number = task.number};
    if (task.verb == Verb::renew) {
      const Renewal renewal = store_.renew(each.key, each.token, task.ttl, limits);
      answer.sent = renewal.counted_from;
      take(answer, renewal, RenewOutcome::renewed, RenewOutcome::lost, RenewOutcome::unknown);
    } else {
      const Released released = store_.release(each.key, each.token, limits);
      take(answer, released, ReleaseOutcome::released, ReleaseOutcome::not_held, ReleaseOutcome::unknown);
    }
    return answer;
  }

  template <class Result, class Outcome>
  static void take(Answer& answer, const Result& result, Outcome done, Outcome not_ours, Outcome unknown) {
    answer.said = result.outcome == done       ? Said::done
                  : result.outcome == not_ours ? Said::not_ours
                  : result.outcome == unknown  ? Said::unknown
                                               : Said::unavailable;
    answer.cause = result.cause.value_or(LossCause::gone);
    if (result.error.code) answer.error = std::make_shared<const Error>(result.error);
  }

  LeaseStore& store_;
  std::vector<Owned> tasks_;
  std::vector<Answer> answers_;
  Mutex mutex_;
  std::condition_variable_any wake_;
  bool woken_ REDLEASE_GUARDED_BY(mutex_){false};
};

}  // namespace

std::unique_ptr<Upkeep> plain_upkeep(LeaseStore& store) { return std::make_unique<PlainUpkeep>(store); }

}  // namespace v0
}  // namespace redlease
