// Three nights of an invoice run that several processes start at 02:00 and one does. A worker's night is
// invoice_shift.cpp, its work under the lease invoice_worker.cpp, the ledger that checks fences ledger.hpp.
#include <algorithm>
#include <filesystem>

#include "invoice_audit.hpp"
#include "invoice_night.hpp"

using namespace std::chrono_literals;

namespace {

void three_nights(const std::string& ledger) {
  const Tally first =
      run_night({.ledger = ledger, .night = 1}, 4, "four workers start at 02:00; one does the work, the others skip.");
  // A worker that comes late may find the lease free again, and nothing left to do.
  const bool nothing_else =
      std::all_of(first.begin(), first.end(), [](auto& t) { return t.first == finished || t.first == skipped; });
  expect(first.contains(finished) && nothing_else, "on the first night one finishes and the others skip");

  const Tally second = run_night({.ledger = ledger, .night = 2, .wait = 20s, .accident = SIGKILL}, 2,
                                 "one of two is killed in the middle; the other waits and goes on from there.");
  expect(second == Tally{{-SIGKILL, 1}, {finished, 1}}, "on the second night one is killed and one finishes");

  const Tally third = run_night({.ledger = ledger, .night = 3, .wait = 20s, .accident = SIGSTOP}, 2,
                                "one is paused past its lease and comes back when another has finished.");
  expect(third == Tally{{fenced_off, 1}, {finished, 1}}, "on the third night one is fenced off and one finishes");
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // whole lines, also into a pipe
  if (is_worker(argc)) return be_worker(argv);

  std::string directory = (std::filesystem::temp_directory_path() / "nightly_invoice.XXXXXX").string();
  expect(::mkdtemp(directory.data()) != nullptr, "there is room for the ledger");
  const std::string ledger = directory + "/ledger.sqlite";
  three_nights(ledger);
  audit(ledger);
  std::filesystem::remove_all(directory);
}
