// A name server that fails or hangs while leases are kept. In an executable of its own, which brings its getaddrinfo.
#include <dlfcn.h>
#include <netdb.h>

#include "keeper_support.hpp"

namespace {

constexpr std::string_view server_name = "leases.test";

enum class NameServer { answers, fails, hangs };
std::atomic<NameServer> name_server{NameServer::answers};
std::atomic<int> asked{0}, answered{0};

void set(NameServer now) {
  name_server = now;
  name_server.notify_all();
}

}  // namespace

// Found before the C library's.
extern "C" int getaddrinfo(const char* __restrict node, const char* __restrict service,
                           const addrinfo* __restrict hints, addrinfo** __restrict found) {
  static const auto real = reinterpret_cast<decltype(&::getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  const bool literals_only = hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) != 0;
  if (node == nullptr || node != server_name || literals_only) return real(node, service, hints, found);
  ++asked;
  name_server.wait(NameServer::hangs);
  ++answered;
  return name_server == NameServer::fails ? EAI_AGAIN : real("127.0.0.1", service, hints, found);
}

namespace redlease {
namespace {

using namespace testing_support;

class KeptWithoutNames : public KeptLease {
 protected:
  KeptWithoutNames() { set(NameServer::answers); }
  ~KeptWithoutNames() override {
    set(NameServer::answers);
    EXPECT_TRUE(eventually([] { return answered == asked; }));
  }
  std::string url() const { return "redis://" + std::string(server_name) + ':' + std::to_string(server.tcp().port); }
  void cut_all() { (void)truth.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}); }
};

TEST_F(KeptWithoutNames, AsLongAsTheConnectionLives) {
  constexpr Millis ttl = 600ms;
  unless_stalled(50ms, [&]() -> std::string {
    set(NameServer::answers);
    const int renewals = events->renewals;
    Client client(url(), {.observer = events});
    LeaseGuard guard = guarded(client, key, kept(ttl));
    EXPECT_TRUE(eventually([&] { return events->renewals > renewals; }));  // the Keeper has its connection
    const int before = asked;
    set(NameServer::hangs);
    const std::string fault = kept_for(guard, ttl, 3 * ttl);
    return fault.empty() && asked != before ? "the name server was asked" : fault;
  });
}

TEST_F(KeptWithoutNames, ForThatPartOfTheTtlThatReconnectingMayTake) {
  constexpr Millis ttl = 1'500ms;
  for (const NameServer trouble : {NameServer::fails, NameServer::hangs}) {
    SCOPED_TRACE(trouble == NameServer::fails ? "fails" : "hangs");
    unless_stalled(50ms, [&]() -> std::string {
      Client client(url(), {.observer = events});
      LeaseGuard guard = guarded(client, key, kept(ttl));
      pause_for(ttl / 2);  // renewed once
      set(trouble);
      cut_all();
      const int before = asked;
      const std::string fault = kept_for(guard, ttl, ttl / 2);
      EXPECT_GT(asked, before) << "the test cut nothing";
      set(NameServer::answers);
      return fault.empty() ? kept_for(guard, ttl, 2 * ttl) : fault;
    });
  }
}

TEST_F(KeptWithoutNames, ForTooLongTheLeaseIsLostInTimeAndEverythingComesBackWithTheNames) {
  constexpr Millis ttl = 900ms;
  for (const NameServer trouble : {NameServer::fails, NameServer::hangs}) {
    SCOPED_TRACE(trouble == NameServer::fails ? "fails" : "hangs");
    unless_stalled(30ms, [&]() -> std::string {
      Client client(url(), {.observer = events});
      Told told;
      LeaseOptions options = kept(ttl);
      options.on_lost = told.recorder();
      LeaseGuard guard = guarded(client, key, options);
      pause_for(ttl / 2);
      set(trouble);
      cut_all();
      StopTime stop(guard.stop_token());
      EXPECT_TRUE(eventually([&] { return told.times == 1; }, 5 * ttl));
      const Deadline deadline = guard.deadline();
      std::string fault = fault_of("the stop", stop.at(), deadline);
      if (fault.empty()) fault = fault_of("on_lost", told.at, deadline);
      EXPECT_EQ(guard.loss(), LossCause::deadline);

      // Whoever asks meanwhile is told in time, and that nothing was sent.
      const Stopwatch watch;
      const AcquireResult refused = client.try_acquire("another", {.ttl = ttl, .op_timeout = 100ms});
      if (fault.empty() && watch.elapsed_ms() > 250ms) fault = "a try took " + in_ms(watch.elapsed_ms());
      EXPECT_NE(error_of(refused).detail.find(server_name), std::string::npos) << error_of(refused).detail;

      const int withdrawn = events->withdrawn;
      set(NameServer::answers);
      EXPECT_TRUE(eventually([&] { return client.try_acquire("another", {.ttl = 30s}).lease().has_value(); }));
      EXPECT_TRUE(eventually([&] { return events->withdrawn > withdrawn; })) << "the lost lease was never given back";
      EXPECT_FALSE(truth.exists(key));
      return fault;
    });
  }
}

}  // namespace
}  // namespace redlease
