// What a process that uses leases can rely on: how it exits, its signals, its stdout and stderr.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>

#include "in_child.hpp"
#include "redlease/redlease.hpp"
#include "support/fault_proxy.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "support/sleepless.hpp"

namespace redlease {
inline namespace v0 {
namespace {

class ProcessEnd : public ::testing::Test {
 protected:
  RedisServer server;
  RawClient raw{server.unix_socket()};
};

TEST_F(ProcessEnd, ByExitGivesBackWhatAStaticGuardHoldsAndTheClientGoesAfterIt) {
  expect_well_in_child([&] {
    static Client client(server.url_unix());
    static const LeaseGuard guard(client, "static", lasting);
    require(guard.held(), "not held");
    std::exit(0);
  });
  EXPECT_FALSE(raw.exists("static"));
  EXPECT_TRUE(raw.exists("static:{static}lease:meta")) << "nobody ever held it";
}

TEST_F(ProcessEnd, ByExitGivesBackThoughTheStaticClientGoesFirst) {
  expect_well_in_child([&] {
    static std::optional<LeaseGuard> guard;
    static std::optional<Lease> lease;
    static Client client(server.url_unix());
    guard.emplace(client, "static", lasting);
    lease.emplace(acquire(client, "bare"));
    std::exit(0);
  });
  EXPECT_FALSE(raw.exists("static"));
  EXPECT_FALSE(raw.exists("bare"));
  EXPECT_TRUE(raw.exists("static:{static}lease:meta")) << "nobody ever held it";
}

TEST_F(ProcessEnd, ByQuickExitLeavesTheLeaseToItsTtl) {
  const LeaseOptions brief{.ttl = Millis(3'000)};
  expect_well_in_child([&] {
    static Client client(server.url_unix());
    static const LeaseGuard guard(client, "static", brief);
    std::quick_exit(0);
  });
  const auto remaining = raw.pttl("static");
  EXPECT_GT(remaining, 0);
  EXPECT_LE(remaining, 3'000);
  EXPECT_TRUE(eventually([&] { return !raw.exists("static"); }));
}

TEST_F(ProcessEnd, ByExitDoesNotWaitForAThreadThatWaitsForALease) {
  raw.set("held for ever", "another's");
  const Stopwatch watch;
  expect_well_in_child([&] {
    auto* client = new Client(server.url_unix());  // outlives the statics: a thread still uses it
    LeaseOptions waiting = lasting;
    waiting.wait = forever;
    std::thread([client, waiting] { (void)client->acquire("held for ever", waiting); }).detach();
    RawClient own(server.unix_socket());
    require(eventually([&] { return std::stoi(own.info("connected_clients")) >= 3; }), "the thread does not wait");
    static Client other(server.url_tcp());
    static const LeaseGuard guard(other, "static", lasting);
    std::exit(0);
  });
  EXPECT_FALSE(raw.exists("static"));
  EXPECT_LT(watch.elapsed_ms(), Millis(30'000));
}

TEST_F(ProcessEnd, SigpipeIsNeverRaised) {
  for (const std::string& url : {server.url_tcp(), server.url_unix()}) {
    expect_well_in_child([&] {
      ::signal(SIGPIPE, SIG_DFL);
      Client client(url);
      Lease lease = acquire(client, "piped");
      RawClient own(server.unix_socket());
      for (int i = 0; i < 50; ++i) {
        // The server's end is closed between and during our writes.
        own.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
        require(lease.renew() == RenewOutcome::renewed, "renew: " + lease.last_error().detail);
      }
    });
  }
  FaultProxy proxy(server.tcp());
  ::signal(SIGPIPE, SIG_DFL);
  Client client(proxy.url());
  Lease lease = acquire(client, "reset");
  for (int i = 0; i < 50; ++i) {
    proxy.cut_after(static_cast<std::uint64_t>(i), 0, true);
    EXPECT_NE(lease.renew(), RenewOutcome::lost);
  }
}

volatile ::sig_atomic_t alarms = 0;

TEST_F(ProcessEnd, AStormOfSignalsBreaksNoCallAndNoReconnect) {
  for (const std::string& url : {server.url_tcp(), server.url_unix()}) {
    expect_well_in_child([&] {
      RawClient own(server.unix_socket());
      struct sigaction action {};
      action.sa_handler = [](int) { alarms = alarms + 1; };  // and no SA_RESTART
      require(::sigaction(SIGALRM, &action, nullptr) == 0, "sigaction");
      const itimerval every{{0, 2'000}, {0, 2'000}};
      require(::setitimer(ITIMER_REAL, &every, nullptr) == 0, "setitimer");
      sigset_t alarm;
      ::sigemptyset(&alarm);
      ::sigaddset(&alarm, SIGALRM);
      Client client(url);
      for (int i = 0; i < 1'000 || alarms < 500; ++i) {
        Lease lease = acquire(client, "stormy");
        if (i % 20 == 0) {
          ::sigprocmask(SIG_BLOCK, &alarm, nullptr);  // the test's own client is no part of this
          own.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
          ::sigprocmask(SIG_UNBLOCK, &alarm, nullptr);
        }
        require(lease.renew() == RenewOutcome::renewed, "renew: " + lease.last_error().detail);
        require(lease.release() == ReleaseOutcome::released, "release: " + lease.last_error().detail);
      }
      // Deadlines are kept as well.
      Lease held = acquire(client, "stormy");
      LeaseOptions waiting = lasting;
      waiting.wait = Millis(300);
      const Stopwatch watch;
      require(client.acquire("stormy", waiting).outcome() != AcquireOutcome::acquired, "acquired though held");
      require(watch.elapsed_ms() >= Millis(270), "gave up too early");
    });
    if (HasFailure()) break;
    raw = RawClient(server.unix_socket());
  }
}

TEST_F(ProcessEnd, NothingIsEverWrittenToStdoutOrStderr) {
  const std::string file = server.dir() + "/output";
  const std::uint16_t port = free_port();
  expect_well_in_child([&] {
    const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    require(fd >= 0 && ::dup2(fd, STDOUT_FILENO) >= 0 && ::dup2(fd, STDERR_FILENO) >= 0, "redirect");
    const LeaseOptions brisk{.ttl = Millis(600'000), .op_timeout = Millis(30)};
    const auto try_all = [&](const std::string& url) {
      Client client(url);
      (void)client.try_acquire("silent", brisk);
      (void)client.inspect("silent");
      (void)client.break_lease("silent");
      (void)fenced_set(client, "silent", "value", FencingToken{7});
      (void)client.ping();
      try {
        const LeaseGuard guard(client, "silent", brisk);
      } catch (const AcquireError&) {
      }
    };
    const std::string closed = "127.0.0.1:" + std::to_string(port);
    const std::string open = "127.0.0.1:" + std::to_string(server.port());
    for (const std::string& url : {"redis://" + closed, "rediss://" + closed, "redis://wrong:secret@" + open,
                                   "rediss://" + open, std::string("unix:///no/such/socket")}) {
      try_all(url);
    }
    (void)Client("redis://no-such-host.invalid").try_acquire("silent", brisk);
    Client client(server.url_tcp());
    Lease lost = acquire(client, "lost", brisk);
    Lease doubtful = acquire(client, "doubtful", brisk);
    RawClient own(server.unix_socket());
    own.set("lost", "another's");
    (void)lost.renew();
    own.command({"HSET", "hash", "a", "b"});
    (void)client.try_acquire("hash", brisk);
    ::kill(server.pid(), SIGSTOP);
    (void)doubtful.renew();
    (void)doubtful.release();
    (void)client.try_acquire("silent", brisk);
    ::kill(server.pid(), SIGCONT);
    require(std::fflush(nullptr) == 0, "flush");
  });
  std::ifstream in(file);
  ASSERT_TRUE(in) << "the child did not get as far";
  const std::string written{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(written, "");
}

}  // namespace
}  // namespace v0
}  // namespace redlease
