#include "redlease/store/redis_store.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "redlease/wire/endpoint.hpp"
#include "store_suite.hpp"
#include "support/redis_server.hpp"

namespace redlease {
namespace {

RedisServer& shared_server() {
  static RedisServer server;
  return server;
}

class RedisWorld {
 public:
  explicit RedisWorld(const std::string& url) : store_(parse_endpoint(url)) {}
  LeaseStore& store() { return store_; }
  std::string key() {
    static int keys = 0;
    return "key-" + std::to_string(++keys);
  }
  void advance(Millis by) { std::this_thread::sleep_for(by); }
  Deadline now() { return LeaseClock::now(); }

 private:
  RedisStore store_;
};

struct UnixWorld : RedisWorld {
  UnixWorld() : RedisWorld(shared_server().url_unix()) {}
};
struct TcpWorld : RedisWorld {
  TcpWorld() : RedisWorld(shared_server().url_tcp()) {}
};

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(RedisByUnixSocket, LeaseStoreSuite, UnixWorld);
INSTANTIATE_TYPED_TEST_SUITE_P(RedisByTcp, LeaseStoreSuite, TcpWorld);

}  // namespace redlease
