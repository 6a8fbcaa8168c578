// Leases that are kept under load: of the machine, and by their number.
#include "keeper_support.hpp"

namespace redlease {
namespace {

using namespace testing_support;

TEST_F(KeptLease, OutlivesItsTtlManyTimesWhileAllCoresAreBusy) {
  // Two thirds of the ttl are there to renew it in.
  unless_stalled(200ms, [&]() -> std::string {
    Client client(server.url_tcp(), {.observer = events});
    LeaseGuard guard = guarded(client, key, kept(500ms));
    const Load load(4);
    return kept_for(guard, 500ms, long_run() ? 60s : 20s);
  });
  EXPECT_GT(events->renewals, 90);
}

class ManyLeases : public OnItsOwnServer {
 protected:
  int connections() {
    const std::string list = truth.command({"CLIENT", "LIST"}).text;
    int count = 0;
    for (std::size_t at = 0; (at = list.find(" name=redlease ", at)) != list.npos; ++at) ++count;
    return count;
  }
};

TEST_F(ManyLeases, AreKeptByOneThreadOverOneConnection) {
  constexpr int count = 2'000;
  constexpr Millis ttl = 1s, time = 5s;
  unless_stalled(150ms, [&]() -> std::string {
    truth.flushall();
    const auto before = threads();  // with the witness
    Client client(server.url_tcp(), {.observer = events});
    std::vector<LeaseGuard> guards;
    guards.reserve(count);
    for (int i = 0; i < count; ++i) guards.push_back(guarded(client, key + std::to_string(i), kept(ttl)));
    const int renewals = events->renewals, losses = events->losses;
    const Stopwatch watch;
    pause_for(time / 2);
    EXPECT_LE(threads(), before + 1);
    EXPECT_EQ(connections(), 2);
    pause_for(time / 2);
    const double per_lease = static_cast<double>(events->renewals - renewals) / count;
    const double seconds = std::chrono::duration<double>(watch.elapsed()).count();
    const auto held = std::count_if(guards.begin(), guards.end(), [](const LeaseGuard& g) { return g.held(); });
    if (held != count || events->losses != losses) return std::to_string(count - held) + " are lost";
    EXPECT_LE(per_lease, 1.1 * 3 * seconds + 1) << "in " << seconds << " s";
    EXPECT_GE(per_lease, 2.4 * seconds - 1) << "in " << seconds << " s";
    return "";
  });
}

}  // namespace
}  // namespace redlease
