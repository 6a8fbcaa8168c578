#pragma once
// `redlease run` on a server of its own, with commands that tell by files what befell them.
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "redlease/redlease.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "tool/tool.hpp"

namespace redlease::testing_support {

// Not there, not even as a zombie.
inline bool gone(pid_t pid) { return ::kill(pid, 0) != 0 && errno == ESRCH; }

class ToolRun : public ::testing::Test {
 protected:
  using Words = std::vector<std::string>;

  // run nightly <options> -- <command>
  static Words line(const Words& options, const Words& command) {
    Words out{"run", "nightly"};
    out.insert(out.end(), options.begin(), options.end());
    out.emplace_back("--");
    out.insert(out.end(), command.begin(), command.end());
    return out;
  }
  ToolSetup with(ToolSetup setup) const {
    setup.url = server_.url_unix();
    setup.env.emplace("D", server_.dir());
    return setup;
  }
  ToolResult run(const Words& command, const Words& options = {}, const ToolSetup& setup = {}) const {
    return run_tool(line(options, command), with(setup));
  }
  // A shell's script, in which $D is a directory for files.
  ToolResult script(const std::string& text, const Words& options = {}, const ToolSetup& setup = {}) const {
    return run({"sh", "-c", text}, options, setup);
  }

  std::string file(const std::string& name) const { return server_.dir() + "/" + name; }
  std::string content(const std::string& name) const {
    std::ifstream in(file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  bool has(const std::string& name) const { return ::access(file(name).c_str(), F_OK) == 0; }
  // The process id that a script has written, once it has; 0 if it never does.
  pid_t pid_in(const std::string& name, Millis limit = Millis(10'000)) const {
    const bool written = becomes([&] { return content(name).ends_with('\n'); }, limit);
    return written ? std::stoi(content(name)) : 0;
  }

  RedisServer server_;
  RawClient raw_{server_.unix_socket()};
};

// A script running under the tool, which writes its own process id to $D/pid when it is ready.
// NOLINTBEGIN(bugprone-macro-parentheses): options may be {}
#define REDLEASE_RUNNING(tool, options, text)             \
  Tool tool(line(options, {"sh", "-c", text}), with({})); \
  const pid_t child = pid_in("pid");                      \
  ASSERT_GT(child, 0) << tool.err()
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace redlease::testing_support
