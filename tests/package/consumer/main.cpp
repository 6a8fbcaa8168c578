#include <iostream>
#include <redlease/redlease.hpp>
#include <redlease/store/memory_store.hpp>

namespace {

class Counting : public redlease::Observer {
 public:
  void acquired(const redlease::Event&) noexcept override { ++count; }
  int count{0};
};

}  // namespace

int main() {
  const auto seen = std::make_shared<Counting>();
  redlease::Client client{"memory:", {.observer = seen}};
  redlease::LeaseGuard lease{client, "report:monthly"};
  const redlease::LeaseGuard second{client, "report:monthly", std::try_to_lock};
  if (second) return 1;

  try {
    redlease::LeaseGuard third{client, "report:monthly"};
    return 2;
  } catch (const redlease::AcquireError& error) {  // caught by type across the library's edge
    if (error.outcome() != redlease::AcquireOutcome::busy || error.code() != redlease::Errc::busy) return 3;
  }
  redlease::Client other{std::make_shared<redlease::MemoryStore>()};
  if (!other.ping().has_value() || seen->count != 1) return 4;

  std::cout << "fence " << static_cast<std::uint64_t>(lease.fencing_token()) << '\n';
  return lease.release() == redlease::ReleaseOutcome::released ? 0 : 5;
}
