// Every bound is refused with a clear error before anything is sent.
#include <poll.h>

#include <cmath>
#include <limits>

#include "listener.hpp"
#include "promise_support.hpp"

namespace redlease {
namespace {

using namespace testing_support;

// What std::invalid_argument said; empty if it was not thrown.
template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

// A server that nobody may as much as connect to.
class Bounds : public ::testing::Test {
 public:
  ~Bounds() override {
    pollfd waiting{listener.fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&waiting, 1, 0), 0) << "something was sent";
  }

 protected:
  void expect_refused(const LeaseOptions& options, const std::string& bound) {
    for (const std::string& text : {refusal([&] { (void)client.try_acquire("k", options).outcome(); }),
                                    refusal([&] { (void)client.acquire("k", options).outcome(); }),
                                    refusal([&] { (void)LeaseGuard(client, "k", options).owns(); }),
                                    refusal([&] { (void)LeaseGuard(client, "k", std::try_to_lock, options).owns(); }),
                                    refusal([&] { (void)client.adopt("k", OwnerToken("t"), options).held(); })}) {
      EXPECT_TRUE(contains(text, bound)) << "\"" << bound << "\" is not in: \"" << text << "\"";
    }
  }
  void expect_refused_client(ClientOptions options, const std::string& bound) {
    const std::string text = refusal([&] { const Client never(listener.url(), options); });
    EXPECT_TRUE(contains(text, bound)) << "\"" << bound << "\" is not in: \"" << text << "\"";
  }

  const Listener listener;
  Client client{listener.url()};
};

TEST_F(Bounds, OfTheTtl) {
  for (const Millis ttl : {0ms, -1ms, Millis::min(), 9ms, Millis(24h) + 1ms, Millis::max()}) {
    expect_refused({.ttl = ttl}, "10 ms and 24 h");
  }
}

TEST_F(Bounds, OfTheWait) {
  for (const Millis wait : {-1ms, Millis::min()}) expect_refused({.wait = wait}, "wait must not be negative");
}

TEST_F(Bounds, OfTheOpTimeout) {
  for (const Millis limit : {0ms, -1ms, Millis::min(), 101ms, Millis::max()}) {
    expect_refused({.ttl = 300ms, .op_timeout = limit}, "1 ms and a third of ttl");
  }
}

TEST_F(Bounds, OfMaxHoldStopBeforeFloorAndLabel) {
  for (const Millis hold : {0ms, -1ms, Millis::min()}) expect_refused({.max_hold = hold}, "max_hold must be positive");
  for (const Millis before : {-1ms, Millis::min(), 501ms, Millis::max()}) {
    expect_refused({.ttl = 1s, .stop_before = before}, "0 and half of ttl");
  }
  for (const std::uint64_t floor : {std::uint64_t{1} << 52, std::numeric_limits<std::uint64_t>::max()}) {
    expect_refused({.fence_floor = FencingToken{floor}}, "2^52");
  }
  expect_refused({.label = std::string(257, 'x')}, "256 bytes");
}

TEST_F(Bounds, OfNames) {
  for (const std::string& name : {std::string(), std::string(513, 'x'), std::string("alease:meta"),
                                  std::string("lease:queue"), std::string("k:lease:seen")}) {
    EXPECT_NE(refusal([&] { (void)client.try_acquire(name).outcome(); }), "") << name;
    EXPECT_NE(refusal([&] { (void)client.inspect(name); }), "") << name;
    EXPECT_NE(refusal([&] { (void)client.break_lease(name); }), "") << name;
    EXPECT_NE(refusal([&] { (void)fenced_set(client, name, "v", FencingToken{1}); }), "") << name;
  }
  const char* null = nullptr;
  EXPECT_NE(refusal([&] { (void)client.try_acquire(null).outcome(); }), "");
  EXPECT_TRUE(contains(refusal([] { LeaseKey(std::string(513, 'x')); }), "512"));
}

TEST_F(Bounds, OfPrefixAndNameTogether) {
  Client prefixed(listener.url(), {.key_prefix = std::string(400, 'p')});
  const std::string name(113, 'n');
  for (const std::string& text :
       {refusal([&] { (void)prefixed.try_acquire(name).outcome(); }),
        refusal([&] { (void)prefixed.acquire(name).outcome(); }), refusal([&] { (void)prefixed.inspect(name); }),
        refusal([&] { (void)prefixed.break_lease(name); }),
        refusal([&] { (void)prefixed.adopt(name, OwnerToken("t")).held(); }),
        refusal([&] { (void)fenced_set(prefixed, name, "v", FencingToken{1}); })}) {
    EXPECT_TRUE(contains(text, "512") && contains(text, "513")) << text;
  }
  Client ending(listener.url(), {.key_prefix = "lease:"});
  EXPECT_NE(refusal([&] { (void)ending.try_acquire("meta").outcome(); }), "");
}

TEST_F(Bounds, OfTokensAndFences) {
  EXPECT_NE(refusal([] { OwnerToken(""); }), "");
  EXPECT_TRUE(contains(refusal([] { OwnerToken(std::string(257, 'x')); }), "256"));
  EXPECT_TRUE(contains(refusal([&] { (void)fenced_set(client, "k", "v", FencingToken{(std::uint64_t{1} << 53) - 1}); }),
                       "2^53 - 2"));
}

TEST_F(Bounds, OfClientOptions) {
  expect_refused_client({.max_connections = 0}, "max_connections must be between 1 and 65,535");
  for (const std::string& name : {std::string("with space"), std::string("line\n"), std::string(257, 'x')}) {
    expect_refused_client({.name = name}, "printable");
  }
  expect_refused_client({.key_prefix = std::string(512, 'p')}, "511");
  for (const double drift : {-0.01, 0.5, 7.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    expect_refused_client({.drift = drift}, "at least 0 and below 0.5");
  }
  expect_refused_client({.quarantine = -1ms}, "quarantine");
  expect_refused_client({.acks = 1}, "acks must be 0");
  TlsOptions half;
  half.cert_file = "/some/where";
  expect_refused_client({.tls = half}, "together");
}

TEST_F(Bounds, OfUrls) {
  const std::string host = "127.0.0.1:" + std::to_string(listener.port());
  for (const std::string& url :
       {std::string(), std::string("127.0.0.1"), std::string("http://") + host, std::string("redis://"),
        std::string("redis://127.0.0.1:0"), std::string("redis://127.0.0.1:70000"), std::string("redis://127.0.0.1:"),
        std::string("redis://") + host + "/x", std::string("redis://") + host + "/-1",
        std::string("redis://") + host + "?database=1", std::string("redis://user:") + secret + "@" + host + "?nope=1",
        std::string("redis://user:") + secret + "@:99", std::string("unix://"), std::string("unix:///a?port=1"),
        std::string("redis+sentinel://") + host + "/m", std::string("redis+cluster://") + host,
        std::string("quorum:redis://") + host}) {
    const std::string text = refusal([&] { const Client never(url); });
    EXPECT_NE(text, "") << url;
    EXPECT_FALSE(contains(text, secret)) << text;
  }
  EXPECT_TRUE(contains(refusal([&] { const Client never("redis://" + host + "?nope=1"); }), "nope"));
  EXPECT_TRUE(contains(refusal([&] { const Client never("redis+cluster://" + host); }), "redis+cluster"));
  EXPECT_NE(refusal([] { const Client never(std::shared_ptr<LeaseStore>{}); }), "");
}

TEST(BoundsWithin, EveryLimitItselfIsAccepted) {
  RedisServer& server = shared_server();
  Client client(
      server.url_unix(),
      {.max_connections = 1, .name = std::string(256, 'n'), .key_prefix = std::string(500, 'p'), .drift = 0.49});
  const std::vector<LeaseOptions> accepted{
      {.ttl = 10ms, .op_timeout = 3ms},
      {.ttl = 24h, .wait = forever, .op_timeout = Millis(8h), .max_hold = Millis::max(), .stop_before = Millis(12h)},
      {.op_timeout = 10s, .fence_floor = FencingToken{(std::uint64_t{1} << 52) - 1}, .label = std::string(256, 'l')},
      {.wait = 60s, .max_hold = 1ms}};
  for (const LeaseOptions& options : accepted) {
    EXPECT_EQ(flaw(options), std::nullopt);
    // The shortest may be over before its answer is here; nothing may be refused.
    std::string name = fresh_key();
    name.resize(12, 'x');
    AcquireResult result = client.try_acquire(name, options);
    if (options.ttl > 10ms) {
      EXPECT_EQ(result.outcome(), AcquireOutcome::acquired) << describe(result);
    }
  }
}

TEST(BoundsWithin, ExtremeLimitsDoNotOverflow) {
  RedisServer& server = shared_server();
  Client client(server.url_unix());
  EXPECT_EQ(client.acquire(fresh_key(), {.wait = Millis::max()}).outcome(), AcquireOutcome::acquired);
  EXPECT_EQ(client.acquire(fresh_key(), {.wait = Millis::max() - 1ms}).outcome(), AcquireOutcome::acquired);
  LeaseOptions options;
  options.max_hold = Millis::max();
  const LeaseGuard guard(client, fresh_key(), options);
  EXPECT_TRUE(guard.held());
}

}  // namespace
}  // namespace redlease
