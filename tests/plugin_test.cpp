// The library inside a shared object that comes and goes, in a host that has it as well.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "redlease/redlease.hpp"
#include "support/children.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "support/sleepless.hpp"
#include "support/temp_dir.hpp"

// What the library keeps until the process ends has no owner any more once the plug-in is unloaded: some 200 bytes.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): AddressSanitizer calls it by this name
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

namespace redlease {
inline namespace v0 {
namespace {

class Plugin {
 public:
  explicit Plugin(const char* file, int flags) : handle_(::dlopen(file, flags)) {
    if (handle_ == nullptr) throw std::runtime_error(::dlerror());
    run_ = reinterpret_cast<Run*>(::dlsym(handle_, "plugin_runs_under_a_lease"));
    if (run_ == nullptr) throw std::runtime_error(::dlerror());
  }
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;
  ~Plugin() { ::dlclose(handle_); }

  static bool is_loaded(const char* file) {
    void* handle = ::dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
    if (handle != nullptr) ::dlclose(handle);
    return handle != nullptr;
  }

  int run(const std::string& url, const std::string& key) const { return run_(url.c_str(), key.c_str()); }

 private:
  using Run = int(const char*, const char*) noexcept;
  void* handle_;
  Run* run_;
};

class InAPlugin : public ::testing::TestWithParam<int> {
 protected:
  RedisServer server;
  RawClient raw{server.unix_socket()};
};

TEST_P(InAPlugin, ItLoadsWorksAndUnloadsAgainAndAgain) {
  Client host(server.url_unix());
  const auto run_all = [&] {
    const Plugin first(REDLEASE_TEST_PLUGIN, GetParam());
    const Plugin second(REDLEASE_TEST_PLUGIN_TOO, GetParam());
    LeaseGuard guard(host, "hosts", LeaseOptions{.ttl = Millis(600'000)});
    for (const std::string& url : {server.url_unix(), server.url_tcp()}) {
      EXPECT_EQ(first.run(url, "plugins"), 1);
      EXPECT_EQ(second.run(url, "plugins"), 1);
    }
    EXPECT_EQ(first.run(server.url_unix(), "hosts"), -1) << "the plug-in does not respect the host's lease";
    EXPECT_TRUE(raw.exists("plugins:{plugins}lease:meta"));
    EXPECT_EQ(guard.release(), ReleaseOutcome::released);
  };
  run_all();
  const auto files = entries("/proc/self/fd");
  const auto threads = entries("/proc/self/task");
  for (int i = 0; i < 3; ++i) {
    run_all();
    EXPECT_FALSE(Plugin::is_loaded(REDLEASE_TEST_PLUGIN)) << "the test does not see what it is about";
    // What it did at load must not be called after it has gone.
    EXPECT_EQ(run_children(1, [](int) {}), std::vector<int>{0}) << "fork() after dlclose()";
  }
  EXPECT_EQ(entries("/proc/self/fd"), files);
  EXPECT_EQ(entries("/proc/self/task"), threads);
}

INSTANTIATE_TEST_SUITE_P(Flags, InAPlugin,
                         ::testing::Values(RTLD_NOW | RTLD_LOCAL, RTLD_NOW | RTLD_GLOBAL, RTLD_LAZY | RTLD_LOCAL),
                         [](const auto& flags) {
                           return std::string((flags.param & RTLD_GLOBAL) != 0 ? "Global" : "Local") +
                                  ((flags.param & RTLD_LAZY) != 0 ? "Lazy" : "Now");
                         });

}  // namespace
}  // namespace v0
}  // namespace redlease
