// run on a terminal, under a shell with job control.
#include <sys/stat.h>

#include "run_support.hpp"
#include "support/sleepless.hpp"
#include "tool/job_shell.hpp"

namespace redlease {
namespace {

using namespace testing_support;

// What is to be stopped waits in a builtin: a shell that is just starting `sleep` by vfork cannot be stopped before
// that has run, and that may be stopped first.
constexpr const char* ctrl_c = "\x03";
constexpr const char* ctrl_z = "\x1a";

class ToolRunTerminal : public ToolRun {
 protected:
  JobShell::Job job(const std::string& text, const Words& options = {}, const std::string& stdout_file = {}) const {
    Words argv{REDLEASE_TOOL};
    const Words rest = line(options, {"sh", "-c", text});
    argv.insert(argv.end(), rest.begin(), rest.end());
    return {argv, {"REDLEASE_URL=" + server_.url_unix(), "D=" + server_.dir()}, stdout_file};
  }
  static bool shows(JobShell& shell, const std::string& text) {
    return becomes([&] { return shell.shown().find(text) != std::string::npos; });
  }
  static bool is_told(JobShell& shell, const std::string& text) {
    return becomes([&] { return shell.told() == text; });
  }
  // 'T' for one that is stopped.
  static char state(pid_t pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
    std::string text((std::istreambuf_iterator<char>(in)), {});
    const auto end = text.rfind(") ");
    return end == text.npos ? '-' : text[end + 2];
  }
};

TEST_F(ToolRunTerminal, TheCommandHasTheTerminalWhileItRunsAndTheToolsGroupHasItBack) {
  JobShell shell(job("echo $$ > $D/pid; read line; echo \"got $line\"; exit 5"), JobShell::Start::foreground);
  const pid_t child = pid_in("pid");
  ASSERT_GT(child, 0);
  EXPECT_EQ(shell.in_front(), child);
  shell.type("hello\n");
  EXPECT_TRUE(shows(shell, "got hello")) << shell.shown();
  EXPECT_TRUE(is_told(shell, "exited 5 ")) << shell.told();
  EXPECT_EQ(shell.in_front(), shell.job());
  EXPECT_FALSE(raw_.exists("nightly"));
}

TEST_F(ToolRunTerminal, TheTerminalComesBackFromACommandThatCannotBeRun) {
  JobShell::Job missing = job("");
  missing.argv = {REDLEASE_TOOL, "run", "nightly", "--", "/nowhere"};
  JobShell shell(missing, JobShell::Start::foreground);
  EXPECT_TRUE(is_told(shell, "exited 127 ")) << shell.told();
  EXPECT_EQ(shell.in_front(), shell.job());
}

TEST_F(ToolRunTerminal, CtrlCEndsTheCommand) {
  JobShell shell(job("echo $$ > $D/pid; exec sleep 60"), JobShell::Start::foreground);
  ASSERT_GT(pid_in("pid"), 0);
  shell.type(ctrl_c);
  EXPECT_TRUE(is_told(shell, "exited 130 ")) << shell.told();
  EXPECT_FALSE(raw_.exists("nightly"));
}

TEST_F(ToolRunTerminal, AHangUpEndsTheCommandWithAllItsGroupAndGivesTheLeaseBack) {
  JobShell shell(job("sleep 300 & echo $! > $D/behind; echo $$ > $D/pid; wait"), JobShell::Start::leader);
  const pid_t child = pid_in("pid"), behind = pid_in("behind");
  ASSERT_GT(child, 0);
  ASSERT_TRUE(raw_.exists("nightly"));
  EXPECT_EQ(shell.hang_up(), 128 + SIGHUP);
  EXPECT_FALSE(raw_.exists("nightly"));
  EXPECT_EQ(state(child), '-');
  EXPECT_EQ(state(behind), '-');
}

TEST_F(ToolRunTerminal, AHangUpOfOneThatWaitsLeavesTheQueue) {
  raw_.set("nightly", "another's");
  JobShell::Job waiting;
  waiting.argv = {REDLEASE_TOOL, "run", "nightly", "--wait", "forever", "--", "true"};
  waiting.env = {"REDLEASE_URL=" + server_.url_unix()};
  JobShell shell(waiting, JobShell::Start::leader);
  ASSERT_TRUE(becomes([&] { return raw_.exists("nightly:{nightly}lease:queue"); }));
  EXPECT_EQ(shell.hang_up(), 128 + SIGHUP);
  EXPECT_FALSE(raw_.exists("nightly:{nightly}lease:queue"));
}

TEST_F(ToolRunTerminal, CtrlZStopsToolAndCommandAndFgContinuesBoth) {
  JobShell shell(job("echo $$ > $D/pid; read line; echo \"got $line\""), JobShell::Start::foreground);
  const pid_t child = pid_in("pid");
  ASSERT_GT(child, 0);
  for (int round = 0; round < 3; ++round) {
    shell.type(ctrl_z);
    std::string told;
    for (int i = 0; i <= round; ++i) told += "stopped 20 ";
    ASSERT_TRUE(is_told(shell, told)) << shell.told();
    EXPECT_EQ(state(child), 'T');
    EXPECT_EQ(state(shell.job()), 'T');
    shell.fg();
    ASSERT_TRUE(becomes([&] { return shell.in_front() == child && state(child) != 'T'; }));
  }
  shell.type("hello\n");
  EXPECT_TRUE(shows(shell, "got hello")) << shell.shown();
  EXPECT_TRUE(becomes([&] { return shell.told().ends_with("exited 0 "); })) << shell.told();
}

TEST_F(ToolRunTerminal, AJobThatWasStoppedForLongerThanItsTtlIsKilledBeforeItRunsOn) {
  JobShell shell(job("trap 'touch $D/ran' CONT; echo $$ > $D/pid; while :; do read x; done", {"--ttl", "600ms"}),
                 JobShell::Start::foreground);
  const pid_t child = pid_in("pid");
  ASSERT_GT(child, 0);
  shell.type(ctrl_z);
  ASSERT_TRUE(is_told(shell, "stopped 20 ")) << shell.told();
  ASSERT_TRUE(becomes([&] { return !raw_.exists("nightly"); }));
  shell.fg();
  EXPECT_TRUE(is_told(shell, "stopped 20 exited 79 ")) << shell.told();
  EXPECT_FALSE(has("ran"));
  EXPECT_TRUE(gone(child));
  EXPECT_EQ(shell.in_front(), shell.job());
}

TEST_F(ToolRunTerminal, InTheBackgroundItWorksUntilItReadsAndThenWaitsForFg) {
  ASSERT_EQ(::mkfifo(file("go").c_str(), 0600), 0);
  for (const auto start : {JobShell::Start::foreground, JobShell::Start::background}) {
    ::unlink(file("pid").c_str());
    JobShell shell(job("echo $$ > $D/pid; read x < $D/go; echo work; read x; echo \"got $x\""), start);
    const pid_t child = pid_in("pid");
    ASSERT_GT(child, 0);
    std::string told;
    if (start == JobShell::Start::foreground) {
      shell.type(ctrl_z);
      ASSERT_TRUE(is_told(shell, told = "stopped 20 ")) << shell.told();
      shell.bg();
    }
    std::ofstream(file("go")) << "\n";
    EXPECT_TRUE(shows(shell, "work")) << shell.shown();
    EXPECT_TRUE(is_told(shell, told + "stopped " + std::to_string(SIGTTIN) + " ")) << shell.told();
    EXPECT_NE(shell.in_front(), child);
    shell.fg();
    shell.type("hello\n");
    EXPECT_TRUE(shows(shell, "got hello")) << shell.shown();
    EXPECT_TRUE(becomes([&] { return shell.told().ends_with("exited 0 "); })) << shell.told();
  }
}

TEST_F(ToolRunTerminal, InAPipelineTheTerminalStaysWithTheJobUntilTheCommandNeedsIt) {
  const std::string out = file("out");
  JobShell shell(
      job("echo $$ > $D/pid; while ! test -e $D/go; do sleep 0.02; done; read x; echo \"got $x\"; exec sleep 60", {},
          out),
      JobShell::Start::foreground);
  const pid_t child = pid_in("pid");
  ASSERT_GT(child, 0);
  EXPECT_EQ(shell.in_front(), shell.job());  // `| less` could go on reading
  std::ofstream(file("go")) << "";
  EXPECT_TRUE(becomes([&] { return shell.in_front() == child; }));
  shell.type("hello\n");
  EXPECT_TRUE(becomes([&] { return content("out") == "got hello\n"; })) << content("out");
  shell.type(ctrl_z);
  ASSERT_TRUE(is_told(shell, "stopped 20 ")) << shell.told();
  shell.fg();
  ASSERT_TRUE(becomes([&] { return state(child) != 'T' && state(shell.job()) != 'T'; }));
  shell.type(ctrl_c);  // to the tool, which passes it on
  EXPECT_TRUE(is_told(shell, "stopped 20 exited 130 ")) << shell.told();
}

TEST_F(ToolRunTerminal, WhereNoShellCouldContinueItCtrlZIsOfNoEffect) {
  JobShell shell(job("echo $$ > $D/pid; read x; echo \"got $x\"; touch $D/end"), JobShell::Start::leader);
  const pid_t child = pid_in("pid");
  ASSERT_GT(child, 0);
  shell.type(ctrl_z);
  shell.type("hello\n");
  EXPECT_TRUE(shows(shell, "got hello")) << shell.shown();
  EXPECT_TRUE(becomes([&] { return has("end"); }));
}

// Also the one that has not yet become the command: whoever waited for that would wait for ever.
TEST_F(ToolRunTerminal, CtrlZAtAnyTimeLeavesAJobThatCanBeContinued) {
  for (int i = 0; i < 30; ++i) {
    ::unlink(file("pid").c_str());
    JobShell shell(job("echo $$ > $D/pid; read x"), JobShell::Start::foreground);
    ASSERT_TRUE(becomes([&] { return shell.in_front() != shell.job() || has("pid"); }));
    ::usleep(static_cast<useconds_t>(i * 50));
    shell.type(ctrl_z);
    ASSERT_TRUE(is_told(shell, "stopped 20 ")) << i << shell.told();
    shell.fg();
    ASSERT_GT(pid_in("pid"), 0);
    shell.type("\n");
    ASSERT_TRUE(becomes([&] { return shell.told().ends_with("exited 0 "); })) << i << shell.told();
  }
}

TEST_F(ToolRunTerminal, ASigstopToTheCommandAloneDoesNotStopTheTool) {
  JobShell shell(job("echo $$ > $D/pid; read x; exit 3", {"--ttl", "2s"}), JobShell::Start::foreground);
  const pid_t child = pid_in("pid");
  ASSERT_GT(child, 0);
  ::kill(child, SIGSTOP);
  ASSERT_TRUE(becomes([&] { return state(child) == 'T'; }));
  const Stopwatch watch;
  while (watch.elapsed_ms() < Millis(3'000)) {
    ASSERT_TRUE(raw_.exists("nightly"));
    ::usleep(20'000);
  }
  ::kill(child, SIGCONT);
  shell.type("\n");
  EXPECT_TRUE(is_told(shell, "exited 3 ")) << shell.told();
}

TEST_F(ToolRunTerminal, TheCommandHearsOfANewSize) {
  JobShell shell(job("trap 'stty size; exit 0' WINCH; echo $$ > $D/pid; while :; do sleep 0.02; done"),
                 JobShell::Start::foreground);
  ASSERT_GT(pid_in("pid"), 0);
  shell.resize(33, 111);
  EXPECT_TRUE(shows(shell, "33 111")) << shell.shown();
  EXPECT_TRUE(is_told(shell, "exited 0 ")) << shell.told();
}

TEST_F(ToolRunTerminal, AWaitOnATerminalTellsForWhomAndCtrlCEndsIt) {
  raw_.set("nightly", "someone");
  JobShell shell(job("touch $D/ran", {"--wait", "forever"}), JobShell::Start::foreground);
  EXPECT_TRUE(shows(shell, "waiting for nightly: held by another")) << shell.shown();
  shell.type(ctrl_c);
  EXPECT_TRUE(is_told(shell, "exited 130 ")) << shell.told();
  EXPECT_FALSE(has("ran"));
}

}  // namespace
}  // namespace redlease
