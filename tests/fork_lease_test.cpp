// What fork() leaves of leases: all of them to the parent, a fresh start to the child.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "in_child.hpp"
#include "redlease/redlease.hpp"
#include "support/children.hpp"
#include "support/fault_proxy.hpp"
#include "support/monitor.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "support/shared_page.hpp"
#include "support/sleepless.hpp"

namespace redlease {
inline namespace v0 {
namespace {

std::string client_id(const Lease& lease) { return lease.token().str().substr(0, 16); }

class ForkedLease : public ::testing::Test {
 protected:
  RedisServer server;
  RawClient raw{server.unix_socket()};
  Client client{server.url_tcp()};
};

TEST_F(ForkedLease, IsInertInTheChildAndUntouchedInTheParent) {
  Lease lease = acquire(client, "parents");
  LeaseGuard guard(client, "guarded", lasting);
  Monitor monitor(server.unix_socket());
  expect_well_in_child([&] {
    require(!lease.held() && lease.remaining() == Millis(0), "the child holds the lease");
    require(!lease.loss(), "the child has lost what it never had");
    require(lease.renew() == RenewOutcome::lost, "the child renewed");
    require(lease.release() == ReleaseOutcome::not_held, "the child released");
    lease.abandon();
    require(!guard.held(), "the child holds the guard's lease");
    require(guard.release() == ReleaseOutcome::not_held, "the child released the guard");
    { const Lease gone = std::move(lease); }
    { const LeaseGuard gone = std::move(guard); }
  });
  EXPECT_TRUE(monitor.lines().empty()) << "the child sent " << monitor.lines()[0].line;
  EXPECT_EQ(raw.get("parents"), lease.token().str());
  EXPECT_EQ(raw.get("guarded"), guard.token().str());
  EXPECT_TRUE(lease.held());
  EXPECT_EQ(lease.renew(), RenewOutcome::renewed) << lease.last_error().detail;
  EXPECT_EQ(lease.release(), ReleaseOutcome::released) << lease.last_error().detail;
  guard.ensure_held();
  EXPECT_EQ(guard.release(), ReleaseOutcome::released) << guard.last_error().detail;
}

TEST_F(ForkedLease, SurvivesTheChildsExitWithItsStatics) {
  static std::optional<Client> parents;
  static std::optional<LeaseGuard> held;
  parents.emplace(server.url_unix());
  held.emplace(*parents, "static", lasting);
  expect_well_in_child([] {
    // The child's statics are destroyed: those that it inherited, too. Sanitizers need not look for leaks, which are
    // meant.
    static const struct Statics {
      ~Statics() {
        held.reset();
        parents.reset();
        ::_exit(0);
      }
    } destroyed_first;
    std::exit(1);
  });
  EXPECT_EQ(raw.get("static"), held->token().str());
  EXPECT_TRUE(held->held());
  EXPECT_EQ(held->release(), ReleaseOutcome::released) << held->last_error().detail;
  held.reset();
  parents.reset();
}

TEST_F(ForkedLease, OfUnknownOutcomeStaysTheParentsToSettle) {
  FaultProxy proxy(server.tcp());
  Client doubtful(proxy.url());
  (void)acquire(doubtful, "so that the server knows the script");
  proxy.withhold_replies();
  const LeaseOptions brisk{.ttl = Millis(600'000), .op_timeout = Millis(100)};
  auto claim = doubtful.try_acquire("doubtful", brisk).claim();
  ASSERT_TRUE(claim);
  ASSERT_TRUE(eventually([&] { return raw.exists("doubtful"); }));
  expect_well_in_child([&] {
    require(!std::move(*claim).retry(deadline_in(Millis(1'000))).lease(), "the child got the parent's lease");
    require(std::move(*claim).withdraw(deadline_in(Millis(1'000))) == ReleaseOutcome::not_held, "withdrawn");
  });
  EXPECT_EQ(raw.get("doubtful"), claim->token().str());
  proxy.withhold_replies(false);
  auto lease = std::move(*claim).retry(deadline_in(Millis(20'000))).lease();
  ASSERT_TRUE(lease);
  EXPECT_EQ(raw.get("doubtful"), lease->token().str());
}

TEST_F(ForkedLease, ChildStartsAfreshOnTheSameClientAndGrandchildAgain) {
  Lease mine = acquire(client, "parents");
  expect_well_in_child([&] {
    Lease childs = acquire(client, "childs");
    require(client_id(childs) != client_id(mine), "the child goes by its parent's id");
    require(client.try_acquire("parents", lasting).busy() != nullptr, "the child got the parent's lease");
    const auto statuses = run_children(1, [&](int) {
      require(!mine.held() && !childs.held(), "the grandchild holds what its elders do");
      Lease own = acquire(client, "grandchilds");
      require(client_id(own) != client_id(childs) && client_id(own) != client_id(mine), "the id is an elder's");
      require(own.renew() == RenewOutcome::renewed, "the grandchild cannot renew");
    });
    require(statuses[0] == 0, "the grandchild failed");
    require(childs.renew() == RenewOutcome::renewed && childs.release() == ReleaseOutcome::released,
            "the grandchild disturbed the child: " + childs.last_error().detail);
  });
  EXPECT_FALSE(raw.exists("childs"));
  EXPECT_FALSE(raw.exists("grandchilds")) << "a lease is released when its scope ends, in a grandchild too";
  EXPECT_EQ(mine.release(), ReleaseOutcome::released) << mine.last_error().detail;
}

TEST_F(ForkedLease, ParentsConnectionLivesUntilTheParentClosesItAndNotLonger) {
  const auto connections = [&] { return std::stoi(raw.info("connected_clients")); };
  const int without = connections();
  auto parents = std::make_unique<Client>(server.url_tcp());
  ASSERT_TRUE(parents->ping().has_value());
  ASSERT_EQ(connections(), without + 1);
  SharedPage page;
  Children child(1, [&](int) {
    page.counter(0) = 1;
    require(eventually([&] { return page.counter(1) == 1; }, Millis(60'000)), "nobody says that it is over");
  });
  ASSERT_TRUE(eventually([&] { return page.counter(0) == 1; }));
  EXPECT_TRUE(parents->ping().has_value());
  EXPECT_EQ(connections(), without + 1);
  parents.reset();
  EXPECT_TRUE(eventually([&] { return connections() == without; })) << "the child keeps the connection alive";
  page.counter(1) = 1;
  EXPECT_EQ(child.wait(), std::vector<int>{0});
}

TEST_F(ForkedLease, LeaksNoDescriptorThroughExec) {
  // Forked without a word to us, as posix_spawn and system() may: only close-on-exec protects.
  const auto sockets_after_exec = [] {
    std::FILE* listing = ::popen("ls -l /proc/self/fd | grep -c socket:", "r");
    int count = -1;
    if (listing == nullptr || std::fscanf(listing, "%d", &count) != 1) count = -1;
    if (listing != nullptr) ::pclose(listing);
    return count;
  };
  const int before = sockets_after_exec();
  Lease lease = acquire(client, "parents");
  Client more(server.url_unix());
  Lease another = acquire(more, "another");
  std::size_t ours = 0;
  for (const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    if (std::filesystem::read_symlink(fd, ignored).string().starts_with("socket:")) ++ours;
  }
  EXPECT_GE(ours, 2U) << "the test looks at nothing";
  EXPECT_EQ(sockets_after_exec(), before);
  EXPECT_EQ(lease.release(), ReleaseOutcome::released);
}

TEST_F(ForkedLease, SharedMemoryStoreIsEmptyInTheChild) {
  Client memory("memory:fork-test");
  Lease lease = acquire(memory, "parents");
  expect_well_in_child([&] {
    Client again("memory:fork-test");
    for (Client* one : {&memory, &again}) {
      Lease own = acquire(*one, "parents");
      require(own.release() == ReleaseOutcome::released, "the child's own store does not work");
    }
  });
  EXPECT_TRUE(lease.held());
  EXPECT_EQ(memory.try_acquire("parents", lasting).outcome(), AcquireOutcome::busy);
  EXPECT_EQ(lease.release(), ReleaseOutcome::released);
}

}  // namespace
}  // namespace v0
}  // namespace redlease
