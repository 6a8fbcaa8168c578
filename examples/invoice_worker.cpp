// The work under the lease, which is kept meanwhile: show the fence, look before each step, and let the ledger have the
// last word.
#include <csignal>
#include <thread>

#include "invoice_shift.hpp"
#include "ledger.hpp"

using namespace std::chrono_literals;

ExitCode post_invoices(const Shift& shift, redlease::LeaseGuard lease) {
  const auto fence = lease.fencing_token();
  const auto invoices = read_invoices();
  const std::string count = std::to_string(invoices.size());
  Ledger ledger(shift.ledger);
  if (!ledger.open_book(fence)) return fenced_off;

  // Where the one before came to, alive or not.
  const auto first = static_cast<std::size_t>(ledger.posted(shift.night));
  if (first == invoices.size()) {
    shift.tell("has the lease now, finds every invoice posted and goes home");
    return finished;
  }
  shift.tell("has the lease, fence " + std::to_string(static_cast<std::uint64_t>(fence)) + "; begins at invoice " +
             std::to_string(first + 1) + " of " + count);

  for (std::size_t i = first; i < invoices.size(); ++i) {
    if (!lease.held()) {
      shift.tell("lost the lease: " + std::string(to_string(lease.loss().value())));
      return lost;
    }
    std::this_thread::sleep_for(80ms);  // printing and mailing it
    // The worst moment: the lease was checked, the write is still to come.
    if (i == accident_at && first < i && shift.accident != 0) ::raise(shift.accident);
    if (!ledger.post(shift.night, invoices[i], fence)) {
      shift.tell("wants to post invoice " + std::to_string(i + 1) +
                 "; the ledger refuses, a newer fence has opened it");
      return fenced_off;
    }
  }

  const auto released = lease.release();
  shift.tell("posted invoices " + std::to_string(first + 1) + " to " + count + ", lease " +
             std::string(to_string(released)));
  return finished;
}
