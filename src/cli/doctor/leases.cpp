// A lease on the scratch key, from its grant to its end, by the library itself.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <thread>

#include "cli/doctor/exam.hpp"
#include "cli/doctor/finding.hpp"
#include "cli/duration.hpp"
#include "mutex.hpp"
#include "redlease/observer.hpp"

namespace redlease::cli::doctor {
namespace {

using namespace std::chrono_literals;

constexpr Millis long_enough{10'000};  // the ttl of scratch leases, and the patience of their waiter
constexpr std::size_t renewals = 200;
constexpr auto renewing = 2'000ms;  // at most

LeaseOptions scratch_options() {
  return {.ttl = long_enough, .wait = long_enough, .op_timeout = 2'000ms, .label = "redlease doctor"};
}

std::string shown(LeaseClock::duration d) {
  return fmt::format("{:.2f} ms", std::chrono::duration<double, std::milli>(d).count());
}

std::string_view cure(const std::error_code& code) {
  if (code == Errc::denied) return "see the findings acl.*";
  if (code == Errc::unsupported) return "see the findings topology.* and acl.lease";
  return "see the findings topology.*, durability.disk, memory.room and replication.replicas";
}

Verdict failed(std::string_view what, const Error& error) {
  if (error.code == Errc::bad_reply || error.code == Errc::unknown_outcome || error.code == Errc::timed_out) {
    return unknown(fmt::format("{}: {}", what, error.detail));
  }
  return fail(fmt::format("{}: {}", what, error.detail), "leases can not be had or kept here as things stand",
              std::string(cure(error.code)));
}

Verdict cycle(Exam& exam) {
  if (!exam.may_lease) return unknown("not tried: see acl.lease");
  Client client = exam.context().client();
  const LeaseKey key(exam.terms().scratch_key);
  std::optional<Verdict> verdict;
  auto held =
      client.try_acquire(key, scratch_options())
          .match([](Lease lease) { return std::optional(std::move(lease)); },
                 [&](Busy) { return verdict = unknown("the scratch key is in use"), std::optional<Lease>(); },
                 [&](Claim claim) { return verdict = failed("acquire", claim.error()), std::optional<Lease>(); },
                 [&](Unavailable u) { return verdict = failed("acquire", u.error), std::optional<Lease>(); });
  exam.expire_scratch();  // of a doubtful one too
  if (!held) return *verdict;
  const Deadline end = deadline_in(renewing);
  while (exam.renewals.size() < renewals && LeaseClock::now() < end && !exam.stop().stop_requested()) {
    const Deadline before = LeaseClock::now();
    if (held->renew() != RenewOutcome::renewed) return failed("renew", held->last_error());
    exam.renewals.push_back(LeaseClock::now() - before);
  }
  const auto seen = client.inspect(key);
  if (!seen.has_value()) return failed("inspect", seen.error());
  if (held->release() != ReleaseOutcome::released) return failed("release", held->last_error());
  return ok(fmt::format("taken, renewed {} times, looked at and given back", exam.renewals.size()));
}

struct Unheard final : Observer {
  void unheard(const Event& event) noexcept override {
    const MutexLock lock(mutex);
    if (event.error != nullptr) why = event.error->detail;
  }
  Mutex mutex;
  std::string why REDLEASE_GUARDED_BY(mutex);
};

Verdict handover(Exam& exam) {
  if (!exam.may_lease || exam.renewals.empty()) return unknown("not tried: see acl.lease and lease.cycle");
  if (!exam.may_queue) return unknown("not tried: see acl.queue");
  const auto told = std::make_shared<Unheard>();
  Client client = exam.context().client({.observer = told});
  const LeaseKey key(exam.terms().scratch_key);
  auto held = client.try_acquire(key, scratch_options()).lease();
  if (!held) return unknown("the scratch lease was not to be had a second time");
  exam.expire_scratch();
  bool acquired = false;
  Deadline at{};
  std::jthread waiter([&] {
    auto next = client.acquire(key, scratch_options(), exam.stop()).lease();
    at = LeaseClock::now();
    acquired = next.has_value();
    if (next) next->release();
  });
  for (const Deadline end = deadline_in(2'000ms); LeaseClock::now() < end && !exam.stop().stop_requested();) {
    const auto seen = client.inspect(key);
    if (!seen.has_value() || seen.value().waiters > 0) break;
    std::this_thread::sleep_for(5ms);
  }
  const Deadline released = LeaseClock::now();
  held->release();
  waiter.join();
  exam.expire_scratch();
  if (!acquired) return unknown("the waiter did not get it in time");
  const MutexLock lock(told->mutex);
  if (!told->why.empty()) {
    return warn("the waiter could not be woken: " + told->why,
                "turns are kept until the waiter asks, up to several seconds; leases are as safe as ever",
                "see acl.wake; a proxy that does not pass PUBLISH and SUBSCRIBE on has the same effect");
  }
  return ok("a waiter had it " + shown(std::max(at - released, LeaseClock::duration::zero())) + " after its release");
}

Verdict latency(Exam& exam) {
  std::string_view of = "renewals";
  std::vector<LeaseClock::duration> times = exam.renewals;
  if (times.empty()) {
    of = "TIMEs";
    for (const Deadline end = deadline_in(1s); times.size() < renewals && LeaseClock::now() < end;) {
      const auto sample = exam.time();
      if (!sample) break;
      times.push_back(sample->round_trip());
    }
  }
  if (times.empty()) return exam.unknown();
  std::sort(times.begin(), times.end());
  const auto p99 = times[(times.size() * 99 + 99) / 100 - 1];
  const Millis limit = exam.op_timeout();
  const std::string found =
      fmt::format("half of {} {} took up to {}, 99 % up to {}; op_timeout {}, ttl {}", times.size(), of,
                  shown(times[times.size() / 2]), shown(p99), show(limit), show(exam.terms().ttl));
  if (p99 * 2 < limit) return ok(found);
  const Millis needed = std::chrono::ceil<Millis>(p99 * 4);
  const std::string mend = fmt::format(
      "an op_timeout of at least {}, so a ttl of at least {}; or a server that is nearer or less busy (SLOWLOG GET)",
      show(needed), show(needed * 3));
  if (p99 < limit) {
    return warn(found, "a little more load and calls end without an answer: unknown outcomes, late renewals", mend);
  }
  return fail(found, "calls end before the answer is there: unknown outcomes, and leases lost for want of renewals",
              mend);
}

Verdict scratch(Exam& exam) {
  if (!exam.wrote_scratch()) return unknown("nothing was written, so nothing was removed");
  if (exam.remove_scratch()) return ok("removed");
  return warn("the scratch keys could not be removed: " + exam.trouble(), "they stay for a minute, in nobody's way",
              "nothing is to be done: they expire");
}

}  // namespace

std::span<const Check> lease_checks() {
  static constexpr std::array<Check, 4> checks{
      {{"lease.cycle", cycle}, {"lease.handover", handover}, {"lease.latency", latency}, {"lease.scratch", scratch}}};
  return checks;
}

}  // namespace redlease::cli::doctor
