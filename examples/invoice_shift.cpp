// One worker's night: at 02:00 get the lease and work, or leave.
#include "invoice_shift.hpp"

#include <thread>

#include "example.hpp"

using namespace std::chrono_literals;

namespace {

ExitCode try_to_work(redlease::Client& redis, const Shift& shift) {
  return redis.acquire(nightly_lease, {.ttl = nightly_ttl, .wait = shift.wait, .label = shift.worker})
      .match(
          [&](redlease::Lease lease) {
            return post_invoices(shift, redlease::LeaseGuard(redis, std::move(lease), {.ttl = nightly_ttl}));
          },
          [&](redlease::Busy busy) {
            shift.tell("skips the night: held by " + busy.holder);
            return skipped;
          },
          [&](redlease::Claim doubtful) {  // dropping it withdraws it
            shift.tell("does not know: " + doubtful.error().detail);
            return out_of_reach;
          },
          [&](redlease::Unavailable unavailable) {
            shift.tell("can not: " + unavailable.error.detail);
            return out_of_reach;
          });
}

}  // namespace

ExitCode work(const Shift& shift) {
  redlease::Client redis{server_url()};
  while (redlease::LeaseClock::now() < shift.two_oclock) std::this_thread::sleep_for(1ms);
  // What is posted stays posted, so whoever lost the lease may simply try again.
  for (int tries = 1;; ++tries) {
    const ExitCode code = try_to_work(redis, shift);
    if (tries == 5 || (code != lost && code != out_of_reach)) return code;
  }
}
