// run: signals to the tool, to the command and to its group, and who of the group outlives whom.
#include "run_support.hpp"
#include "support/sleepless.hpp"

namespace redlease {
namespace {

using namespace testing_support;

constexpr auto until_end = "echo $$ > $D/pid; while ! test -e $D/end; do sleep 0.02; done";

TEST_F(ToolRun, SignalsToTheToolReachTheCommand) {
  const std::vector<int> signals{SIGINT,  SIGTERM, SIGHUP,   SIGQUIT, SIGUSR1,
                                 SIGUSR2, SIGALRM, SIGWINCH, SIGCONT, SIGRTMIN};
  std::string traps;
  for (const int n : signals) traps += "trap 'echo " + std::to_string(n) + " >> $D/got' " + std::to_string(n) + "\n";
  REDLEASE_RUNNING(tool, {}, traps + until_end);
  std::string expected;
  for (const int n : signals) {
    tool.signal(n);
    expected += std::to_string(n) + "\n";
    EXPECT_TRUE(becomes([&] { return content("got") == expected; })) << "signal " << n << ": " << content("got");
  }
  std::ofstream(file("end")) << "";
  EXPECT_EQ(tool.wait().exit, 0);
}

TEST_F(ToolRun, WhatEndsAJobGoesToTheGroupAndTheRestToTheCommandAlone) {
  REDLEASE_RUNNING(tool, {},
                   "trap 'echo > $D/usr1' USR1; sleep 60 & echo $! > $D/helper; trap 'wait; exit 9' TERM;"
                   "echo $$ > $D/pid; while :; do sleep 0.02; done");
  const pid_t helper = pid_in("helper");
  tool.signal(SIGUSR1);
  EXPECT_TRUE(becomes([&] { return has("usr1"); }));
  EXPECT_FALSE(gone(helper));
  tool.signal(SIGTERM);
  EXPECT_EQ(tool.wait().exit, 9);  // "wait" ended, since the helper did
  EXPECT_TRUE(gone(helper));
  EXPECT_FALSE(raw_.exists("nightly"));
}

TEST_F(ToolRun, AToolThatIsToldToEndGivesTheLeaseBackWhenTheCommandHasEnded) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    ::unlink(file("pid").c_str());
    REDLEASE_RUNNING(tool, (Words{"--ttl", "10m"}), "echo $$ > $D/pid; exec sleep 60");
    tool.signal(signal);
    EXPECT_EQ(tool.wait().exit, 128 + signal);
    EXPECT_TRUE(gone(child));
    EXPECT_FALSE(raw_.exists("nightly"));
  }
}

TEST_F(ToolRun, ACommandMayIgnoreWhatTheToolPassesOn) {
  REDLEASE_RUNNING(tool, {},
                   std::string("trap 'echo > $D/term' TERM; trap 'echo > $D/int' INT; ") + until_end + "; exit 4");
  tool.signal(SIGTERM);
  EXPECT_TRUE(becomes([&] { return has("term"); }));
  tool.signal(SIGINT);
  EXPECT_TRUE(becomes([&] { return has("int"); }));
  EXPECT_FALSE(gone(child));
  EXPECT_TRUE(raw_.exists("nightly"));
  std::ofstream(file("end")) << "";
  EXPECT_EQ(tool.wait().exit, 4);
}

TEST_F(ToolRun, SignalsToTheCommandOrItsGroupEndTheTool) {
  for (const bool group : {false, true}) {
    for (const int signal : {SIGTERM, SIGKILL}) {
      ::unlink(file("pid").c_str());
      REDLEASE_RUNNING(tool, {}, "echo $$ > $D/pid; exec sleep 60");
      EXPECT_EQ(::getpgid(child), child);
      ::kill(group ? -child : child, signal);
      EXPECT_EQ(tool.wait().exit, 128 + signal);
      EXPECT_FALSE(raw_.exists("nightly"));
    }
  }
}

TEST_F(ToolRun, WhoDaemonisesEscapesAndTheLeaseIsGivenBack) {
  const auto result = script(
      "setsid sh -c 'echo $$ > $D/daemon; exec sleep 60' > /dev/null 2>&1 &"
      "while ! test -s $D/daemon; do sleep 0.01; done; exit 6");
  const pid_t daemon = pid_in("daemon");
  EXPECT_EQ(result.exit, 6);
  EXPECT_EQ(result.err, "");
  EXPECT_FALSE(raw_.exists("nightly"));
  ASSERT_GT(daemon, 0);
  EXPECT_FALSE(gone(daemon));
  ::kill(daemon, SIGKILL);
}

TEST_F(ToolRun, WhatIsLeftOfTheGroupKeepsTheLeaseUntilItEnds) {
  Tool tool(line({"--ttl", "2s"}, {"sh", "-c", "(while ! test -e $D/end; do sleep 0.02; done) & exit 6"}), with({}));
  ASSERT_TRUE(becomes([&] { return tool.err().find("others of its process group") != std::string::npos; }))
      << tool.err();
  const Stopwatch watch;
  while (watch.elapsed_ms() < Millis(3'000)) {
    ASSERT_TRUE(raw_.exists("nightly"));
    ::usleep(20'000);
  }
  std::ofstream(file("end")) << "";
  EXPECT_EQ(tool.wait().exit, 6);
  EXPECT_FALSE(raw_.exists("nightly"));
}

TEST_F(ToolRun, ASignalEndsWhatIsLeftOfTheGroupByForceIfNeedBe) {
  for (const std::string trap : {"", "trap '' TERM;"}) {
    ::unlink(file("rest").c_str());
    Tool tool(line({"--ttl", "10s", "--grace", "300ms"},
                   {"sh", "-c", "(" + trap + "trap '' INT; while :; do sleep 1; done) & echo $! > $D/rest; exit 6"}),
              with({}));
    const pid_t rest = pid_in("rest");
    ASSERT_GT(rest, 0);
    ASSERT_TRUE(becomes([&] { return tool.err().find("others of its") != std::string::npos; })) << tool.err();
    tool.signal(SIGINT);
    EXPECT_EQ(tool.wait().exit, 6) << trap;
    EXPECT_TRUE(gone(rest));
    EXPECT_FALSE(raw_.exists("nightly"));
  }
}

TEST_F(ToolRun, WhatWasIgnoredWhenTheToolBeganStaysIgnored) {
  // As under nohup; what is left of the group is ended by a SIGHUP that is not.
  Tool tool(
      {"run", "outer", "--", "sh", "-c",
       std::string("trap '' HUP; exec '") + REDLEASE_TOOL +
           "' run nightly -- sh -c '(while ! test -e $D/end; do sleep 0.02; done) & echo $PPID > $D/tool; exit 6'"},
      with({}));
  const pid_t inner = pid_in("tool");
  ASSERT_GT(inner, 0);
  ASSERT_TRUE(becomes([&] { return tool.err().find("others of its process group") != std::string::npos; }));
  ::kill(inner, SIGHUP);
  ::kill(inner, SIGCONT);  // taken behind it
  ::usleep(100'000);
  EXPECT_TRUE(raw_.exists("nightly"));
  std::ofstream(file("end")) << "";
  EXPECT_EQ(tool.wait().exit, 6);
}

TEST_F(ToolRun, AToolThatStoodStillForLongerThanTheTtlKillsAtOnceAndSaysLost) {
  REDLEASE_RUNNING(tool, (Words{"--ttl", "600ms"}),
                   "trap 'echo > $D/told' TERM; echo $$ > $D/pid; while :; do sleep 0.02; done");
  tool.signal(SIGSTOP);
  ASSERT_TRUE(becomes([&] { return !raw_.exists("nightly"); }));
  EXPECT_FALSE(gone(child));  // nobody can do better: that is what the fence is for
  tool.signal(SIGCONT);
  EXPECT_TRUE(becomes([&] { return gone(child); }));
  EXPECT_EQ(tool.wait().exit, 79);
  EXPECT_FALSE(has("told"));
}

TEST_F(ToolRun, ACommandThatEndedWhileTheToolStoodStillCannotBeSaidToHaveEndedInTime) {
  REDLEASE_RUNNING(tool, (Words{"--ttl", "600ms"}), until_end);
  tool.signal(SIGSTOP);
  std::ofstream(file("end")) << "";
  ASSERT_TRUE(becomes([&] { return !raw_.exists("nightly"); }));
  tool.signal(SIGCONT);
  const auto result = tool.wait();
  EXPECT_EQ(result.exit, 79);
  EXPECT_NE(result.err.find("exit code 0"), std::string::npos) << result.err;
}

TEST_F(ToolRun, AToolThatStoodStillForLessGoesOn) {
  REDLEASE_RUNNING(tool, (Words{"--ttl", "6s"}), std::string(until_end) + "; exit 2");
  tool.signal(SIGSTOP);
  ::usleep(1'000'000);
  tool.signal(SIGCONT);
  std::ofstream(file("end")) << "";
  EXPECT_EQ(tool.wait().exit, 2);
}

TEST_F(ToolRun, ACommandThatIsStoppedKeepsItsLease) {
  REDLEASE_RUNNING(tool, (Words{"--ttl", "2s"}), std::string(until_end) + "; exit 2");
  ::kill(child, SIGSTOP);
  const Stopwatch watch;
  while (watch.elapsed_ms() < Millis(3'000)) {
    ASSERT_TRUE(raw_.exists("nightly"));
    ::usleep(20'000);
  }
  std::ofstream(file("end")) << "";
  ::kill(child, SIGCONT);
  EXPECT_EQ(tool.wait().exit, 2);
}

TEST_F(ToolRun, ACommandLearnsThatTheToolWasKilled) {
  REDLEASE_RUNNING(tool, (Words{"--ttl", "10m"}),
                   "trap 'echo > $D/told; exit' TERM; echo $$ > $D/pid; while :; do sleep 0.02; done");
  tool.signal(SIGKILL);
  EXPECT_EQ(tool.wait().exit, -SIGKILL);
  EXPECT_TRUE(becomes([&] { return has("told"); }));
  EXPECT_TRUE(becomes([&] { return gone(child); }));
  EXPECT_TRUE(raw_.exists("nightly"));  // until its ttl
}

}  // namespace
}  // namespace redlease
