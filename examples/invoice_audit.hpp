#pragma once
// What must be true in the morning, whoever was killed or paused in the night.
#include "invoice_shift.hpp"
#include "ledger.hpp"

inline void audit_night(Ledger& ledger, std::int64_t night, std::int64_t least_leases) {
  std::int64_t count = 0;
  std::int64_t total = 0;
  for (const Invoice& invoice : read_invoices()) {
    ++count;
    total += invoice.cents;
  }
  const std::int64_t leases = ledger.leases(night);
  expect(ledger.posted(night) == count, "every invoice is posted");
  expect(ledger.lines(night) == count, "no invoice is posted twice");
  expect(ledger.cents(night) == total, "the sum is right");
  expect(leases >= least_leases, "as many leases were needed as the night tells of");
  std::printf("  night %d  %d invoices, each posted once, %lld.%02lld in all, under %d lease%s\n",
              static_cast<int>(night), static_cast<int>(count), static_cast<long long>(total / 100),
              static_cast<long long>(total % 100), static_cast<int>(leases), leases == 1 ? "" : "s");
}

inline void audit(const std::string& file) {
  std::puts("\nWhat the ledger and the server say:");
  Ledger ledger(file);
  audit_night(ledger, 1, 1);
  audit_night(ledger, 2, 2);
  audit_night(ledger, 3, 2);
  expect(ledger.stale_lines() == 0, "nothing was posted with a fence older than one before");
  redlease::Client redis{server_url()};
  expect(!redis.inspect(nightly_lease).value().held, "the lease is free");
  std::puts("  nothing was posted with a stale fence; the lease is free");
}
