#pragma once
// What all examples need and none is about: where the server is, a way to fail, and a second process.
#include <spawn.h>
#include <sys/types.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

inline std::string server_url() {
  const char* url = std::getenv("REDLEASE_URL");
  return url != nullptr ? url : "redis://127.0.0.1:6379";
}

inline void expect(bool truth, const char* what) {
  if (truth) return;
  std::fprintf(stderr, "not as it should be: %s\n", what);
  std::exit(1);
}

// This program once more, with these arguments.
inline pid_t spawn_self(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "/proc/self/exe");
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::fflush(stdout);
  pid_t pid = -1;
  expect(::posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ) == 0, "a second process starts");
  return pid;
}
