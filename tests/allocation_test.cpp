// Renewing and releasing a healthy lease allocate nothing, by whichever way memory is asked for.
#include <gtest/gtest.h>
#include <openssl/crypto.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>

#include "redlease/redlease.hpp"
#include "support/redis_server.hpp"
#include "tls_redis_server.hpp"

namespace {

thread_local bool counting = false;
thread_local std::uint64_t allocations = 0;

void count() noexcept { allocations += counting ? 1 : 0; }

}  // namespace

// What operator new, hiredis and the C library itself come to in the end.
extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): glibc's own names
void* __libc_malloc(std::size_t) noexcept;
void* __libc_calloc(std::size_t, std::size_t) noexcept;
void* __libc_realloc(void*, std::size_t) noexcept;
void* __libc_memalign(std::size_t, std::size_t) noexcept;
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

void* malloc(std::size_t size) noexcept {
  count();
  return __libc_malloc(size);
}
void* calloc(std::size_t number, std::size_t size) noexcept {
  count();
  return __libc_calloc(number, size);
}
void* realloc(void* memory, std::size_t size) noexcept {
  count();
  return __libc_realloc(memory, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  count();
  return __libc_memalign(alignment, size);
}
}

// OpenSSL allocates for each record that it writes, which is not ours to change: not counted. Before its first use.
const int openssl_is_not_counted = ::CRYPTO_set_mem_functions(
    [](std::size_t size, const char*, int) { return __libc_malloc(size); },
    [](void* memory, std::size_t size, const char*, int) { return __libc_realloc(memory, size); },
    [](void* memory, const char*, int) { std::free(memory); });

namespace redlease {
inline namespace v0 {
namespace {

template <class Call>
std::uint64_t allocations_of(Call call) {
  allocations = 0;
  counting = true;
  call();
  counting = false;
  return allocations;
}

const LeaseOptions lasting{.ttl = Millis(600'000), .op_timeout = Millis(20'000)};

// The longest of names and tokens' worth, so that no buffer is merely large enough for short ones.
const LeaseKey key(std::string(LeaseKey::max_size, 'k'));

void expect_none(Client& client, const std::string& when) {
  auto lease = client.try_acquire(key, lasting).lease();
  ASSERT_TRUE(lease) << when;
  for (int i = 0; i < 3; ++i) {
    RenewOutcome renewed{};
    EXPECT_EQ(allocations_of([&] { renewed = lease->renew(); }), 0U) << "renewal " << i << ' ' << when;
    EXPECT_EQ(renewed, RenewOutcome::renewed) << lease->last_error().detail;
  }
  bool held = false;
  EXPECT_EQ(allocations_of([&] { held = lease->held() && lease->remaining() > Millis(0) && !lease->loss(); }), 0U);
  EXPECT_TRUE(held);
  ReleaseOutcome released{};
  EXPECT_EQ(allocations_of([&] { released = lease->release(); }), 0U) << "release " << when;
  EXPECT_EQ(released, ReleaseOutcome::released) << lease->last_error().detail;
}

// The scripts are known to the server: the first time that it is told one is no healthy renewal but a set-up.
void teach_scripts(Client& client) {
  auto lease = client.try_acquire("first", lasting).lease();
  ASSERT_TRUE(lease);
  ASSERT_EQ(lease->renew(), RenewOutcome::renewed);
  ASSERT_EQ(lease->release(), ReleaseOutcome::released);
}

void expect_none_ever(const std::string& url, const ClientOptions& options = {}) {
  {
    Client teacher(url, options);
    teach_scripts(teacher);
  }
  Client client(url, options);
  expect_none(client, "right after the first acquire");
  for (int i = 0; i < 1'000; ++i) {
    auto lease = client.try_acquire(key, lasting).lease();
    ASSERT_TRUE(lease);
  }
  expect_none(client, "after a thousand cycles");
}

TEST(Allocation, IsCounted) {
  EXPECT_EQ(allocations_of([] { std::make_unique<std::string>(100, 'x'); }), 2U);
  EXPECT_EQ(allocations_of([] {
              void* volatile memory = std::malloc(1);
              memory = std::realloc(memory, 1'000);
              std::free(memory);
            }),
            2U);
  EXPECT_EQ(allocations_of([] {}), 0U);
}

TEST(Allocation, NoneToRenewAndReleaseOverAUnixSocket) {
  const RedisServer server;
  expect_none_ever(server.url_unix());
}

TEST(Allocation, NoneToRenewAndReleaseOverTcp) {
  const RedisServer server;
  expect_none_ever(server.url_tcp());
}

TEST(Allocation, NoneToRenewAndReleaseInMemory) { expect_none_ever("memory:allocations"); }

TEST(Allocation, NoneToCountIt) { expect_none_ever("memory:counted", {.observer = std::make_shared<Metrics>()}); }

TEST(Allocation, NoneOfOursToRenewAndReleaseOverTls) {
  ASSERT_EQ(openssl_is_not_counted, 1);
  const testing_support::TlsRedisServer server;
  expect_none_ever(server.url(), server.options());
}

}  // namespace
}  // namespace v0
}  // namespace redlease
