#include "redlease/client.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "core.hpp"
#include "helper_names.hpp"
#include "redlease/plan/wait_plan.hpp"
#include "store/open_store.hpp"

namespace redlease {
inline namespace v0 {

namespace {

// Whether trying again may help.
bool may_pass(const Error& error) {
  for (const Errc final : {Errc::denied, Errc::not_a_lease, Errc::unsupported, Errc::server_error, Errc::tls_failed}) {
    if (error.code == final) return false;
  }
  return true;
}

// False if a stop was requested. In slices, since the clock may be one that a test moves.
bool sleep_until(Deadline until, const Clock& clock, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  const bool real = &clock == &Clock::real();
  while (!stop.stop_requested()) {
    const auto left = until - clock.now();
    if (left <= LeaseClock::duration::zero()) return true;
    never.wait_for(lock, stop, std::min<LeaseClock::duration>(left, real ? Millis(1'000) : Millis(5)),
                   [] { return false; });
  }
  return false;
}

// The tries of one acquire with a wait, and the last truth. The observer is told of it from beginning to end.
class Wait {
 public:
  Wait(Wish wish, Millis limit, std::stop_token stop)
      : wish_(std::move(wish)),
        stop_(std::move(stop)),
        begun_(clock().now()),
        give_up_(deadline_after(begun_, limit)),
        plan_(begun_, give_up_, std::hash<std::string>{}(OwnerToken::generate().str())) {
    wish_.core->tell(&Observer::waiting, {.key = wish_.key.str()});
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  ~Wait() {
    wish_.core->tell(&Observer::waited,
                     {.key = wish_.key.str(), .elapsed = clock().now() - begun_, .attempts = attempts_});
  }

  AcquireResult run() {
    while (const auto next = plan_.next()) {
      if (!sleep_until(*next, clock(), stop_)) return cancelled();
      // The first try always gets its whole op_timeout; the later ones end with the wait.
      const auto limit = attempts_ == 0 ? LeaseClock::duration(wish_.op_timeout)
                                        : std::min<LeaseClock::duration>(wish_.op_timeout, give_up_ - clock().now());
      if (limit <= LeaseClock::duration::zero()) break;  // woken too late for another
      ++attempts_;
      const Limits limits{deadline_in(limit), stop_};
      std::optional<Claim> doubt = std::exchange(doubt_, std::nullopt);
      AcquireResult result = doubt ? LeaseMaker::retry(*std::move(doubt), limits) : LeaseMaker::acquire(wish_, limits);
      if (saw(result, limit < wish_.op_timeout)) return result;
      if (stop_.stop_requested()) return cancelled();
    }
    if (doubt_) return *std::move(doubt_);
    return std::move(*last_);
  }

 private:
  const Clock& clock() const noexcept { return wish_.core->clock; }

  // True if there is nothing more to try for.
  bool saw(AcquireResult& result, bool cut_short) {
    const Deadline now = clock().now();
    switch (result.outcome()) {
      case AcquireOutcome::acquired: return true;
      case AcquireOutcome::busy: plan_.saw_busy(now, result.busy()->remaining); break;
      case AcquireOutcome::unknown:
        doubt_ = std::move(result).claim();
        plan_.saw_trouble(now);
        return false;
      case AcquireOutcome::unavailable:
        if (!may_pass(result.unavailable()->error)) return true;
        plan_.saw_trouble(now);
        // That the wait ended before this try had begun in earnest is no news of the lease.
        if (cut_short && last_ && result.unavailable()->error.code == Errc::timed_out) return false;
    }
    last_.emplace(std::move(result));
    return false;
  }

  AcquireResult cancelled() {
    if (doubt_) return *std::move(doubt_);
    return Unavailable{{Errc::cancelled, "acquire " + quoted(wish_.key.str()) + " at " +
                                             std::string(wish_.core->store->server()) +
                                             ": a stop was requested; nothing of it is on the server"}};
  }

  const Wish wish_;
  const std::stop_token stop_;
  const Deadline begun_, give_up_;
  WaitPlan plan_;
  std::optional<Claim> doubt_;
  std::optional<AcquireResult> last_;
  unsigned attempts_{0};
};

}  // namespace

Client::Client(std::string_view url, ClientOptions options) : Client(open_store(url, checked(options)), options) {}

Client::Client(std::shared_ptr<LeaseStore> store, ClientOptions options) {
  checked(options);
  if (!store) throw std::invalid_argument("redlease: a Client needs a LeaseStore, and this pointer is null");
  state_ = std::make_shared<State>(State{std::make_shared<Core>(std::move(store), options)});
}

Client::~Client() {
  try {
    state_->core->keeper.get().close();  // made if need be: what outlives the Client must find it closed
  } catch (const std::bad_alloc&) {
    // Then nothing was kept, and there is no memory to begin with it.
  }
}

AcquireResult Client::try_acquire(const LeaseKey& key, const LeaseOptions& options) {
  const Wish wish(state_->core, key, options);
  return LeaseMaker::acquire(wish, {deadline_in(wish.op_timeout), {}});
}

AcquireResult Client::acquire(const LeaseKey& key, const LeaseOptions& options, std::stop_token stop) {
  return Wait(Wish(state_->core, key, options), options.wait, std::move(stop)).run();
}

Lease Client::adopt(const LeaseKey& key, const OwnerToken& token, const LeaseOptions& options) {
  return LeaseMaker::adopted(Tenure(state_->core, key, options), token);
}

Result<LeaseInfo> Client::inspect(const LeaseKey& key) {
  return state_->core->store->inspect(full_name(*state_->core, key.str()), short_call());
}

Result<bool> Client::break_lease(const LeaseKey& key) {
  return state_->core->store->break_lease(full_name(*state_->core, key.str()), short_call());
}

Result<Unit> Client::ping() { return state_->core->store->ping(short_call()); }

}  // namespace v0
}  // namespace redlease
