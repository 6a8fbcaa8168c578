// run: the lease is lost, or nearly.
#include <fcntl.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "keeper_support.hpp"
#include "run_support.hpp"
#include "support/fault_proxy.hpp"

namespace redlease {
namespace {

using namespace testing_support;

constexpr auto for_ever = "echo $$ > $D/pid; while :; do sleep 0.02; done";

class ToolRunLost : public ToolRun {
 protected:
  // A script under a lease through the proxy, running.
  std::unique_ptr<Tool> through_proxy(const Words& options, const std::string& text, ToolSetup setup = {}) {
    for (const char* name : {"pid", "told"}) ::unlink(file(name).c_str());
    Words all = options;
    all.insert(all.end(), {"--url", proxy_.url()});
    auto tool = std::make_unique<Tool>(line(all, {"sh", "-c", text}), with(std::move(setup)));
    child_ = pid_in("pid");
    return tool;
  }
  // The server is out of reach from now on; until when it keeps the lease.
  Deadline cut_off() {
    proxy_.refuse();
    proxy_.drop_all();
    if (!proxy_.settled()) throw std::runtime_error("the server does not close its connections");
    const Deadline before = LeaseClock::now();
    return before + Millis(raw_.pttl("nightly"));
  }
  Deadline death_of_child() const {
    if (!becomes([&] { return gone(child_); }, Millis(30'000))) return Deadline::max();
    return LeaseClock::now();
  }

  FaultProxy proxy_{server_.unix_socket()};
  pid_t child_{0};
};

TEST_F(ToolRunLost, IsToldToStopAheadAndKilledBeforeTheServerCanGrantToAnother) {
  constexpr Millis ttl(3'000), grace(1'000), margin(32);
  unless_stalled(10ms, [&]() -> std::string {
    proxy_.refuse(false);
    raw_.flushall();
    auto tool =
        through_proxy({"--ttl", "3s", "--grace", "1s"}, std::string("trap 'echo $$ > $D/told' TERM; ") + for_ever);
    if (child_ == 0) return "no child";
    const Deadline end = cut_off();
    if (pid_in("told") == 0) return "never told";
    const Deadline told = LeaseClock::now();
    const Deadline died = death_of_child();
    const auto result = tool->wait();
    EXPECT_EQ(result.exit, 79);
    EXPECT_NE(result.err.find("was told to stop (SIGTERM)"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("was killed (SIGKILL): no renewal succeeds"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("exit code 137"), std::string::npos) << result.err;
    // pttl rounds to a millisecond; the trap runs after the shell's sleep; the margin is the holder's safety.
    if (died > end + 1ms) return "died after the server's end, by " + in_ms(died - end);
    std::string fault = fault_of("death", died, end - margin - 20ms);
    return fault.empty() ? fault_of("the word", told, end - margin - 20ms - grace, 100ms) : fault;
  });
}

TEST_F(ToolRunLost, TheLargerOfGraceAndStopBeforeCounts) {
  auto tool = through_proxy({"--ttl", "6s", "--grace", "100ms", "--stop-before", "3s"},
                            std::string("trap 'echo $$ > $D/told; exit 0' TERM; ") + for_ever);
  ASSERT_GT(child_, 0);
  const Deadline end = cut_off();
  ASSERT_GT(pid_in("told"), 0);
  EXPECT_GT(end - LeaseClock::now(), 2s);
  EXPECT_EQ(tool->wait().exit, 79);
}

TEST_F(ToolRunLost, ACommandThatEndsWellWhenToldIsLostAllTheSame) {
  auto tool = through_proxy({"--ttl", "900ms"}, std::string("trap 'echo $$ > $D/told; exit 0' TERM; ") + for_ever);
  ASSERT_GT(child_, 0);
  cut_off();
  const auto result = tool->wait();
  EXPECT_EQ(result.exit, 79);
  EXPECT_TRUE(has("told"));
  EXPECT_NE(result.err.find("told to stop"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("SIGKILL"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("exit code 0"), std::string::npos) << result.err;
}

TEST_F(ToolRunLost, AServerThatIsAwayForLessIsNotEvenMentioned) {
  auto tool = through_proxy({"--ttl", "6s", "--grace", "1s"},
                            "echo $$ > $D/pid; while ! test -e $D/end; do sleep 0.02; done; exit 3");
  ASSERT_GT(child_, 0);
  cut_off();
  ::usleep(2'500'000);  // a renewal was due after 2 s
  proxy_.refuse(false);
  ASSERT_TRUE(becomes([&] { return raw_.pttl("nightly") > 5'000; }));
  std::ofstream(file("end")) << "";
  const auto result = tool->wait();
  EXPECT_EQ(result.exit, 3);
  EXPECT_EQ(result.err, "");
}

TEST_F(ToolRunLost, AServerThatStandsStillIsAsGoodAsGone) {
  REDLEASE_RUNNING(tool, (Words{"--ttl", "900ms"}), std::string("trap '' TERM; ") + for_ever);
  server_.stop();
  EXPECT_TRUE(becomes([&] { return gone(child); }));
  const auto result = tool.wait();
  server_.cont();
  EXPECT_EQ(result.exit, 79) << result.err;
}

TEST_F(ToolRunLost, ACommandThatWasStoppedIsContinuedToHearOfItsEnd) {
  auto tool = through_proxy({"--ttl", "3s", "--grace", "1s"},
                            std::string("trap 'echo $$ > $D/told; exit 0' TERM; ") + for_ever);
  ASSERT_GT(child_, 0);
  ::kill(child_, SIGSTOP);
  cut_off();
  EXPECT_EQ(tool->wait().exit, 79);
  EXPECT_TRUE(has("told"));
}

TEST_F(ToolRunLost, TheWholeGroupIsKilled) {
  auto tool = through_proxy({"--ttl", "600ms"}, std::string("trap '' TERM; (trap '' TERM; while :; do sleep 1; done) &"
                                                            "echo $! > $D/helper; ") +
                                                    for_ever);
  ASSERT_GT(child_, 0);
  const pid_t helper = pid_in("helper");
  cut_off();
  EXPECT_EQ(tool->wait().exit, 79);
  EXPECT_TRUE(gone(helper));
}

TEST_F(ToolRunLost, WhatIsFoundGoneAfterTheWordToStopIsKilledAtOnce) {
  auto tool =
      through_proxy({"--ttl", "60s", "--grace", "25s"}, std::string("trap 'echo $$ > $D/told' TERM; ") + for_ever);
  ASSERT_GT(child_, 0);
  proxy_.refuse();
  proxy_.drop_all();
  ASSERT_GT(pid_in("told", Millis(60'000)), 0);
  raw_.del("nightly");
  proxy_.refuse(false);
  const Deadline back = LeaseClock::now();
  EXPECT_LT(death_of_child() - back, 15s);  // of the grace there are 25 s
  const auto result = tool->wait();
  EXPECT_EQ(result.exit, 79);
  EXPECT_NE(result.err.find("(SIGKILL): the key is gone"), std::string::npos) << result.err;
}

TEST_F(ToolRunLost, ACommandThatLeftItsOwnGroupIsKilledAllTheSame) {
  REDLEASE_RUNNING(
      tool, (Words{"--ttl", "900ms"}),
      "exec perl -e 'if (!($c = fork)) { setpgrp(0, 0); sleep 5; exit } select(undef, undef, undef, 0.2);"
      " setpgrp(0, $c); $SIG{TERM} = q(IGNORE); open F, qq(>$ENV{D}/pid); print F qq($$\\n); close F; sleep 60'");
  EXPECT_NE(::getpgid(child), child);
  raw_.del("nightly");
  EXPECT_EQ(tool.wait(Millis(20'000)).exit, 79);
  EXPECT_TRUE(gone(child));
}

TEST_F(ToolRunLost, WhatIsTakenByAnotherIsKilledAtTheNextRenewal) {
  for (const bool taken : {true, false}) {
    ::unlink(file("pid").c_str());
    raw_.del("nightly");
    REDLEASE_RUNNING(tool, (Words{"--ttl", "900ms"}), std::string("trap 'echo > $D/told' TERM; ") + for_ever);
    if (taken) {
      raw_.set("nightly", "someone");
    } else {
      EXPECT_EQ(run_tool({"break", "nightly", "--yes"}, with({})).exit, 0);
    }
    const auto result = tool.wait(Millis(5'000));
    EXPECT_EQ(result.exit, 79);
    EXPECT_NE(result.err.find(taken ? "(SIGKILL): another holds it now" : "(SIGKILL): the key is gone"),
              std::string::npos)
        << result.err;
    EXPECT_TRUE(gone(child));
    EXPECT_EQ(raw_.get("nightly").value_or("none"), taken ? "someone" : "none");
  }
  EXPECT_FALSE(has("told"));  // what is another's already is no time to tidy up
}

TEST_F(ToolRunLost, ALossThatIsSeenOnlyAtTheEndIsALoss) {
  const auto result = script("redis-cli -s $D/redis.sock del nightly > /dev/null; exit 0", {"--ttl", "10m"});
  EXPECT_EQ(result.exit, 79);
  EXPECT_NE(result.err.find("was lost while the command ran"), std::string::npos) << result.err;
}

TEST_F(ToolRunLost, ALeaseThatCannotBeGivenBackDoesNotSpoilTheCommand) {
  auto tool = through_proxy({"--ttl", "30s"}, "echo $$ > $D/pid; while ! test -e $D/end; do sleep 0.02; done; exit 3");
  ASSERT_GT(child_, 0);
  cut_off();
  std::ofstream(file("end")) << "";
  const auto result = tool->wait();
  EXPECT_EQ(result.exit, 3);
  EXPECT_NE(result.err.find("could not be given back"), std::string::npos) << result.err;
}

TEST_F(ToolRunLost, MaxHoldEndsTheCommandAndTheLeaseIsHeldUntilItHasEnded) {
  Tool tool(line({"--ttl", "30s", "--grace", "500ms", "--max-hold", "1500ms"},
                 {"sh", "-c", "trap 'echo $$ > $D/told' TERM; while :; do sleep 0.02; done"}),
            with({}));
  const Stopwatch watch;
  ASSERT_GT(pid_in("told"), 0);
  EXPECT_TRUE(raw_.exists("nightly"));
  EXPECT_GE(watch.elapsed_ms(), Millis(900));
  const auto result = tool.wait();
  EXPECT_GE(watch.elapsed_ms(), Millis(1'400));
  EXPECT_EQ(result.exit, 79);
  EXPECT_NE(result.err.find("--max-hold"), std::string::npos) << result.err;
  EXPECT_FALSE(raw_.exists("nightly"));
}

TEST_F(ToolRunLost, NobodyReadingItsWarningsCannotKeepTheToolFromKilling) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  const std::string block(1 << 16, 'x');
  while (::write(ends[1], block.data(), block.size()) > 0) {
  }
  ::fcntl(ends[1], F_SETFL, 0);
  auto tool = through_proxy({"--ttl", "900ms", "--quiet"}, std::string("trap '' TERM; exec 2> /dev/null; ") + for_ever,
                            {.before_exec = [&] { ::dup2(ends[1], 2); }});
  ASSERT_GT(child_, 0);
  cut_off();
  EXPECT_TRUE(becomes([&] { return gone(child_); }, Millis(3'000)));
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_EQ(tool->wait().exit, 79);
}

}  // namespace
}  // namespace redlease
