#pragma once
#include <memory>
#include <optional>
#include <stop_token>

#include "core.hpp"
#include "redlease/plan/wait_plan.hpp"
#include "redlease/store/seat.hpp"

namespace redlease {
inline namespace v0 {

// One acquire with a wait, from beginning to end: does what its WaitPlan says, and tells the plan what came of it. The
// observer is told of both ends.
class Wait {
 public:
  Wait(Wish, Millis limit, std::stop_token);
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  ~Wait();

  AcquireResult run();

 private:
  const Clock& clock() const noexcept { return wish_.core->clock; }
  Deadline now() const noexcept { return clock().now(); }
  WaitPlan::Terms terms() const noexcept;
  // A result ends the wait.
  std::optional<AcquireResult> ask(Ask);
  std::optional<AcquireResult> saw(Seat::Answer, Deadline begun, bool cut_short);
  std::optional<AcquireResult> listen(Deadline until);
  void subscribe();
  AcquireResult granted(const Granted&, Deadline begun);
  AcquireResult end(bool stopped);
  void tell(void (Observer::*)(const Event&) noexcept, Deadline begun, const Error* = nullptr) const noexcept;

  const Wish wish_;
  const std::stop_token stop_;
  const Deadline begun_, give_up_;
  const std::unique_ptr<Seat> seat_;
  WaitPlan plan_;
  std::optional<Error> doubt_;  // of the latest question
  std::optional<AcquireResult> last_;
  unsigned attempts_{0};
};

}  // namespace v0
}  // namespace redlease
