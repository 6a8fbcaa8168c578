// run by the real binary: what a command gets and how it ends, while nothing goes wrong with the lease.
#include <fcntl.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "run_support.hpp"

namespace redlease {
namespace {

using namespace testing_support;
using Json = nlohmann::json;

TEST_F(ToolRun, EndsAsTheCommandEnds) {
  for (const int code : {0, 1, 3, 64, 75, 79, 126, 255}) {
    EXPECT_EQ(script("exit " + std::to_string(code)).exit, code);
    EXPECT_FALSE(raw_.exists("nightly"));
  }
  for (const int signal : {SIGTERM, SIGKILL, SIGINT, SIGUSR1}) {
    const auto result = script("kill -" + std::to_string(signal) + " $$");
    EXPECT_EQ(result.exit, 128 + signal);
    EXPECT_EQ(result.err, "");
    EXPECT_FALSE(raw_.exists("nightly"));
  }
}

TEST_F(ToolRun, TheLeaseIsHeldAndRenewedWhileTheCommandRuns) {
  REDLEASE_RUNNING(tool, (Words{"--ttl", "2s", "--label", "backup"}), "echo $$ > $D/pid; sleep 4");
  Client client(server_.url_unix());
  const Deadline end = deadline_in(Millis(3'000));
  while (LeaseClock::now() < end) {
    const auto info = client.inspect("nightly");
    ASSERT_TRUE(info.has_value());
    ASSERT_TRUE(info.value().held);
    ASSERT_EQ(info.value().label, "backup");
    ::usleep(50'000);
  }
  EXPECT_EQ(tool.wait().exit, 0);
  EXPECT_FALSE(raw_.exists("nightly"));
}

TEST_F(ToolRun, TheCommandIsToldKeyTokenFenceAndServer) {
  const auto result = script(
      "echo $REDLEASE_KEY $REDLEASE_TOKEN $REDLEASE_FENCE $REDLEASE_URL; redis-cli -s $D/redis.sock get nightly");
  const auto first = result.out.substr(0, result.out.find('\n'));
  std::istringstream words(first);
  std::string key, token, fence, url, stored;
  words >> key >> token >> fence >> url;
  EXPECT_EQ(key, "nightly");
  EXPECT_EQ(token + "\n", result.out.substr(first.size() + 1));
  EXPECT_GT(std::stoull(fence), 0U);
  EXPECT_EQ(url, server_.url_unix());
}

TEST_F(ToolRun, TheToolInsideTheCommandFindsTheSameLease) {
  const std::string tool = REDLEASE_TOOL;
  const auto result = script(tool + " renew $REDLEASE_KEY --ttl 5m && " + tool + " show $REDLEASE_KEY --json",
                             {"--prefix", "billing:"});
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out).at("held"), true);
  EXPECT_GT(Json::parse(result.out).at("remaining_ms"), 200'000);
}

TEST_F(ToolRun, APasswordIsHandedOnByWhereItIsButNotWhatItIs) {
  raw_.command({"ACL", "SETUSER", "strong", "on", ">xyzzy-9", "~*", "&*", "+@all"});
  std::ofstream(file("password")) << "xyzzy-9\n";
  const std::string show = std::string(REDLEASE_TOOL) + " show nightly --json; env";
  const auto from_file =
      run_tool(line({"--url", "unix://strong@" + server_.socket_path(), "--password-file", "password"},
                    {"sh", "-c", "cd /; " + show}),
               {.before_exec = [&] { (void)!::chdir(server_.dir().c_str()); }});
  EXPECT_NE(from_file.out.find("\"held\": true"), std::string::npos) << from_file.err;
  EXPECT_NE(from_file.out.find("REDLEASE_PASSWORD_FILE=" + file("password")), std::string::npos) << from_file.out;
  const auto in_url = run_tool(line({"--url", "unix://strong:xyzzy-9@" + server_.socket_path()}, {"sh", "-c", show}),
                               with({.env = {{"REDLEASE_URL", "redis://elsewhere"}}}));
  EXPECT_EQ(in_url.exit, 0) << in_url.err;
  EXPECT_NE(in_url.out.find("REDLEASE_URL=unix://strong@" + server_.socket_path()), std::string::npos) << in_url.out;
  EXPECT_EQ(in_url.out.find("xyzzy-9"), std::string::npos) << in_url.out;
}

TEST_F(ToolRun, ArgumentsArriveAsTheyWereGiven) {
  const Words words{"",        " ",     "a b", "'",  "\"", "$HOME", "*",    "--",  "-x",  "--ttl",
                    "--url=x", "[a,b]", "{}",  "%%", "\\", "a\nb",  "\xff", "run", "show"};
  Words command{"printf", "%s|"};
  command.insert(command.end(), words.begin(), words.end());
  std::string expected;
  for (const std::string& word : words) expected += word + "|";
  EXPECT_EQ(run(command).out, expected);
}

TEST_F(ToolRun, StdinAndOutputAreTheCommandsOwn) {
  std::string much;
  for (int i = 0; i < 200'000; ++i) much += "line " + std::to_string(i) + "\n";
  const auto result = run({"cat"}, {}, {.input = much});
  EXPECT_EQ(result.exit, 0);
  EXPECT_EQ(result.out, much);
  EXPECT_EQ(script("cat; echo to err >&2", {}, {.input = "x"}).err, "to err\n");
}

TEST_F(ToolRun, AStdinThatIsAPipeEndsWhenItsWriterDoes) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  Tool tool(line({}, {"cat"}), with({.before_exec = [&] { ::dup2(ends[0], 0); }}));
  ::close(ends[0]);
  ASSERT_EQ(::write(ends[1], "one\n", 4), 4);
  EXPECT_TRUE(becomes([&] { return tool.out() == "one\n"; }));
  ASSERT_EQ(::write(ends[1], "two\n", 4), 4);
  ::close(ends[1]);
  EXPECT_EQ(tool.wait().exit, 0);
  EXPECT_EQ(tool.out(), "one\ntwo\n");
}

TEST_F(ToolRun, TheCommandHasNoDescriptorButWhatItInherits) {
  const auto ours =
      script("for f in /proc/self/fd/*; do echo ${f##*/}; done; readlink /proc/$$/fd/7", {}, {.before_exec = [] {
               for (int fd = 3; fd < 256; ++fd) ::close(fd);
               ::open("/dev/null", O_RDONLY);
               ::dup2(3, 7);
               ::close(3);
             }});
  EXPECT_TRUE(ours.out.starts_with("0\n1\n2\n")) << ours.out;
  EXPECT_TRUE(ours.out.ends_with("7\n/dev/null\n")) << ours.out;
  EXPECT_EQ(ours.out.find("\n4\n"), std::string::npos) << ours.out;  // 3 is the shell's, reading the directory
}

TEST_F(ToolRun, ClosedDescriptorsStayClosedForTheCommandAndAreNoSocketForTheTool) {
  const auto all = [] {
    for (int fd = 0; fd < 3; ++fd) ::close(fd);
  };
  const auto result = script("for fd in 0 1 2; do test -e /proc/$$/fd/$fd && echo $fd >> $D/open; done; echo > $D/done",
                             {}, {.before_exec = all});
  EXPECT_EQ(result.exit, 0);
  EXPECT_TRUE(has("done"));
  EXPECT_EQ(content("open"), "");
  EXPECT_EQ(run({"/nowhere"}, {}, {.before_exec = all}).exit, 127);
  EXPECT_EQ(run({"true"}, {"--ttl", "5"}, {.before_exec = all}).exit, 64);
  // The first that the tool opens would be its stdout, and a token that went there would count as printed.
  EXPECT_EQ(run_tool({"acquire", "nightly"}, with({.before_exec = [] { ::close(1); }})).exit, 1);
  EXPECT_FALSE(raw_.exists("nightly"));
}

TEST_F(ToolRun, SignalMaskAndDispositionsAreAsTheToolFoundThem) {
  const std::string tell = "grep -E '^Sig(Blk|Ign)' /proc/self/status";
  const auto plain = run({"sh", "-c", tell});
  EXPECT_NE(plain.out.find("SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"), std::string::npos) << plain.out;
  const auto odd = run({"grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"}, {}, {.before_exec = [] {
                         ::signal(SIGPIPE, SIG_IGN);
                         ::signal(SIGCHLD, SIG_IGN);  // a tool that left it so would never learn how its child ended
                         ::signal(SIGHUP, SIG_IGN);
                         sigset_t set;
                         sigemptyset(&set);
                         sigaddset(&set, SIGUSR2);
                         ::sigprocmask(SIG_BLOCK, &set, nullptr);
                       }});
  EXPECT_EQ(odd.exit, 0);
  EXPECT_EQ(odd.out, "SigBlk:\t0000000000000800\nSigIgn:\t0000000000011001\n");
}

TEST_F(ToolRun, ACommandDiesOfAClosedPipeAsItWouldAlone) {
  EXPECT_EQ(run({"yes"}, {}, {.closed_output = true}).exit, 128 + SIGPIPE);
  EXPECT_FALSE(raw_.exists("nightly"));
}

TEST_F(ToolRun, WhatCannotBeRunIs126Or127AndTheLeaseIsGivenBackAtOnce) {
  for (const auto& [command, exit] : std::vector<std::pair<std::string, int>>{{"/nowhere/at/all", 127},
                                                                              {"no-such-command", 127},
                                                                              {"", 127},
                                                                              {"/dev/null/x", 127},
                                                                              {"/etc", 126},
                                                                              {"/etc/passwd", 126}}) {
    const auto result = run({command}, {"--ttl", "1m"});
    EXPECT_EQ(result.exit, exit) << command;
    EXPECT_NE(result.err.find("cannot be run"), std::string::npos) << result.err;
    EXPECT_FALSE(raw_.exists("nightly"));
  }
  EXPECT_EQ(Json::parse(run({"/nowhere"}, {"--json"}).out).at("error").at("code"), "not_found");
}

TEST_F(ToolRun, CommandsAreFoundAsAShellFindsThem) {
  std::ofstream(file("plain")) << "echo plain $1\n";  // no "#!"
  std::ofstream(file("closed")) << "#!/bin/sh\necho closed\n";
  ::chmod(file("plain").c_str(), 0755);
  ::chmod(file("closed").c_str(), 0644);
  EXPECT_EQ(run({"plain", "x"}, {}, {.env = {{"PATH", "/nowhere:" + server_.dir() + ":/bin:/usr/bin"}}}).out,
            "plain x\n");
  EXPECT_EQ(run({"closed"}, {}, {.env = {{"PATH", server_.dir()}}}).exit, 126);
  EXPECT_EQ(run({"./plain", "y"}, {}, {.before_exec = [&] { (void)!::chdir(server_.dir().c_str()); }}).out,
            "plain y\n");
}

TEST_F(ToolRun, WhatIsHeldIsBusyAndTheCommandDoesNotRun) {
  raw_.set("nightly", "someone");
  const auto busy = script("touch $D/ran");
  EXPECT_EQ(busy.exit, 75);
  EXPECT_EQ(busy.out, "");
  EXPECT_NE(busy.err.find("nightly is held by another"), std::string::npos);
  EXPECT_EQ(script("touch $D/ran", {"--wait", "200ms"}).exit, 75);
  const auto cron = script("touch $D/ran", {"--busy-exit", "0", "--quiet"});
  EXPECT_EQ(cron.exit, 0);
  EXPECT_EQ(cron.out + cron.err, "");
  EXPECT_FALSE(has("ran"));
}

TEST_F(ToolRun, TroubleBeforeTheCommandHasTheExitCodesOfAcquire) {
  raw_.command({"LPUSH", "list", "1"});
  raw_.command({"ACL", "SETUSER", "weak", "on", ">word", "~other:*", "+@all"});
  const auto to = [](const std::string& key, const std::string& url) {
    return run_tool({"run", key, "--url", url, "--", "true"}).exit;
  };
  EXPECT_EQ(to("list", server_.url_unix()), 65);
  EXPECT_EQ(to("nightly", "unix:///nowhere/redis.sock"), 69);
  EXPECT_EQ(to("nightly", "unix://weak:word@" + server_.socket_path()), 77);
}

TEST_F(ToolRun, AnInterruptedWaitRunsNothing) {
  raw_.set("nightly", "someone");
  for (const auto& [signal, exit] : {std::pair{SIGINT, 130}, {SIGTERM, 143}, {SIGHUP, 129}}) {
    Tool tool(line({"--wait", "forever"}, {"sh", "-c", "touch $D/ran"}), with({}));
    ASSERT_TRUE(becomes([&] { return raw_.exists("nightly:{nightly}lease:queue"); }));
    tool.signal(signal);
    EXPECT_EQ(tool.wait().exit, exit);
    EXPECT_FALSE(raw_.exists("nightly:{nightly}lease:queue"));
  }
  EXPECT_FALSE(has("ran"));
}

TEST_F(ToolRun, FlawedArgumentsAreAUsageErrorBeforeAnythingIsSent) {
  const std::vector<Words> flawed{
      {"run"},
      {"run", "nightly"},
      {"run", "nightly", "--"},
      {"run", "nightly", "true"},
      {"run", "--", "true"},
      {"run", "nightly", "--grace", "6s", "--ttl", "10s", "--", "true"},
      {"run", "nightly", "--stop-before", "6s", "--ttl", "10s", "--", "true"},
      {"run", "nightly", "--max-hold", "10s", "--", "true"},
      {"run", "nightly", "--grace", "soon", "--", "true"},
      {"run", "nightly", "--busy-exit", "-1", "--", "true"},
      {"run", "", "--", "true"},
  };
  for (const auto& arguments : flawed) {
    const auto result = run_tool(arguments, with({}));
    EXPECT_EQ(result.exit, 64) << ::testing::PrintToString(arguments) << result.err;
  }
  EXPECT_EQ(raw_.keys(), Words{});
  EXPECT_EQ(run({"true"}, {"--ttl", "10s", "--grace", "5s", "--stop-before", "5s"}).exit, 0);
}

TEST_F(ToolRun, MemoryIsEnoughWhereOneProcessIs) {
  const auto result =
      run_tool({"run", "nightly", "--url", "memory:", "--", "sh", "-c", "echo $REDLEASE_FENCE; exit 5"});
  EXPECT_EQ(result.exit, 5);
  EXPECT_GT(std::stoull(result.out), 0U);
}

}  // namespace
}  // namespace redlease
