// A writer that was paused past its lease still believes in it. The database must refuse it, by its fence.
#include <chrono>
#include <cstdio>
#include <redlease/redlease.hpp>

#include "example.hpp"
#include "sqlite.hpp"

using namespace std::chrono_literals;

namespace {

// The check and the write in ONE statement: a check before it could be overtaken.
bool set_price(Database& shop, std::int64_t cents, redlease::FencingToken fence) {
  return shop.run("UPDATE price SET cents = ?1, fence = ?2 WHERE item = 'bolt' AND fence <= ?2",
                  {cents, static_cast<std::int64_t>(fence)}) == 1;
}

}  // namespace

int main() {
  redlease::Client redis{server_url()};
  Database shop{":memory:"};
  shop.run("CREATE TABLE price(item TEXT PRIMARY KEY, cents INTEGER NOT NULL, fence INTEGER NOT NULL)");
  shop.run("INSERT INTO price VALUES ('bolt', 100, 0)");

  auto slow = redis.acquire("example:price:bolt", {.ttl = 1s, .wait = 5s}).lease().value();
  expect(set_price(shop, 110, *slow.fencing_token()), "the holder writes");
  std::puts("slow:  has the lease, sets the price to 110, and is paused");

  // The next one gets the lease when the first one's ttl has passed.
  auto quick = redis.acquire("example:price:bolt", {.ttl = 30s, .wait = 30s}).lease().value();
  expect(quick.fencing_token() > slow.fencing_token(), "every grant has a higher fence than the one before");
  expect(set_price(shop, 120, *quick.fencing_token()), "the new holder writes");
  std::puts("quick: has the lease, sets the price to 120");

  std::puts("slow:  goes on where it was paused, and wants to set the price to 115");
  expect(!set_price(shop, 115, *slow.fencing_token()), "the stale writer is refused");
  expect(shop.number("SELECT cents FROM price WHERE item = 'bolt'") == 120, "what the new holder wrote stands");
  std::puts("slow:  refused, its fence is older than the one that the database has seen");

  expect(!slow.held() && slow.loss() == redlease::LossCause::deadline, "had it asked, it would have known");
}
