// acquire, renew and release by the real binary.
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "redlease/redlease.hpp"
#include "support/fault_proxy.hpp"
#include "support/raw_client.hpp"
#include "support/redis_server.hpp"
#include "tool/tool.hpp"

namespace redlease {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

class ToolAcquire : public ::testing::Test {
 protected:
  ToolResult run(const std::vector<std::string>& arguments, ToolSetup setup = {}) {
    setup.url = server_.url_unix();
    return run_tool(arguments, setup);
  }
  std::string acquired(const std::string& key) {
    const auto result = run({"acquire", key});
    EXPECT_EQ(result.exit, 0) << result.err;
    return result.out.substr(0, result.out.find('\n'));
  }

  RedisServer server_;
  RawClient raw_{server_.unix_socket()};
};

TEST_F(ToolAcquire, PrintsTheTokenAloneAndTheLeaseStays) {
  const auto result = run({"acquire", "nightly", "--ttl", "1m"});
  EXPECT_EQ(result.exit, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out, raw_.get("nightly").value() + "\n");
  EXPECT_GT(raw_.pttl("nightly"), 50'000);
}

TEST_F(ToolAcquire, AsJsonTellsTokenFenceAndValidity) {
  const auto result = run({"acquire", "nightly", "--ttl", "1m", "--json"});
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json.at("key"), "nightly");
  EXPECT_EQ(json.at("token"), raw_.get("nightly").value());
  EXPECT_GT(json.at("fence"), 0);
  EXPECT_GT(json.at("valid_ms"), 50'000);
  EXPECT_LE(json.at("valid_ms"), 60'000);
}

TEST_F(ToolAcquire, ThePrefixIsPartOfTheKeyOnTheServer) {
  EXPECT_EQ(run({"acquire", "nightly", "--prefix", "billing:"}).exit, 0);
  EXPECT_TRUE(raw_.exists("billing:nightly"));
}

TEST_F(ToolAcquire, AHeldKeyIsBusyAndSaysWhoHasIt) {
  raw_.set("nightly", "someone");
  const auto result = run({"acquire", "nightly"});
  EXPECT_EQ(result.exit, 75);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "redlease: nightly is held by another, without an expiry\n");
  const auto cron = run({"acquire", "nightly", "--busy-exit", "0", "--quiet"});
  EXPECT_EQ(cron.exit, 0);
  EXPECT_EQ(cron.out + cron.err, "");
  const auto json = run({"acquire", "nightly", "--json"});
  EXPECT_EQ(json.exit, 75);
  EXPECT_EQ(Json::parse(json.out).at("error").at("code"), "busy");
}

TEST_F(ToolAcquire, WaitsUntilTheKeyIsFree) {
  raw_.command({"SET", "nightly", "someone", "PX", "400"});
  EXPECT_EQ(run({"acquire", "nightly", "--wait", "20s"}).exit, 0);
  EXPECT_EQ(run({"acquire", "nightly", "--wait", "300ms"}).exit, 75);
}

TEST_F(ToolAcquire, AnInterruptedWaitEndsAtOnceAndLeavesNothing) {
  raw_.set("nightly", "someone");
  for (const auto& [signal, exit] : {std::pair{SIGINT, 130}, std::pair{SIGTERM, 143}}) {
    Tool tool({"acquire", "nightly", "--wait", "forever"}, {.url = server_.url_unix()});
    ASSERT_TRUE(becomes([&] { return raw_.exists("nightly:{nightly}lease:queue"); }));
    tool.signal(signal);
    EXPECT_EQ(tool.wait(Millis(2'000)).exit, exit);
    EXPECT_FALSE(raw_.exists("nightly:{nightly}lease:queue"));
  }
}

TEST_F(ToolAcquire, ATokenThatNobodyCouldReadIsGivenBack) {
  const auto gone = run({"acquire", "nightly"}, {.closed_output = true});
  EXPECT_EQ(gone.exit, 1);
  EXPECT_NE(gone.err.find("could not write to standard output"), std::string::npos) << gone.err;
  EXPECT_FALSE(raw_.exists("nightly"));
  EXPECT_EQ(run({"acquire", "nightly"}, {.output_file = "/dev/full"}).exit, 1);
  EXPECT_FALSE(raw_.exists("nightly"));
}

TEST_F(ToolAcquire, WhatIsWrongWithTheCommandLineIsSaidInItsOwnWords) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{"run", "nightly", "echo", "hi"}, "goes behind --: redlease run KEY [options] -- echo hi\n"},
      {{"run", "nightly", "--busy-exit", "0", "sh", "-c", "echo hi"}, "goes behind --: redlease run KEY"},
      {{"run", "nightly", "--tll", "10s", "--", "true"}, "there is no option --tll of redlease run\n"},
      {{"acquire", "nightly", "--token", "abc"}, "there is no option --token of redlease acquire\n"},
      {{"status", "nightly"}, "'status' is no command; there are run, acquire,"},
      {{"show", "one", "another"}, "'another' is more than redlease show takes\n"},
      {{"renew", "nightly"}, "no token is given: say --token or set REDLEASE_TOKEN"},
      {{"show", "nightly", "--url", "foo"}, "redlease: --url: not a server URL: it does not begin with redis://"},
      {{"show", "nightly", "--url", "unix://tmp/s"}, "three slashes, as in unix:///"}};
  for (const auto& [words, said] : mistakes) {
    const auto result = run(words);
    EXPECT_EQ(result.exit, 64) << result.err;
    EXPECT_NE(result.err.find(said), std::string::npos) << result.err;
  }
}

TEST_F(ToolAcquire, ALongWaitForAServerThatIsNotThereSaysSoSoon) {
  Tool tool({"acquire", "nightly", "--wait", "forever"}, {.url = "unix:///nowhere/redis.sock"});
  std::this_thread::sleep_for(Millis(2'500));
  tool.signal(SIGTERM);
  const auto result = tool.wait(Millis(2'000));
  EXPECT_EQ(result.exit, 143);
  EXPECT_NE(result.err.find("waiting for nightly; cannot connect to unix:///nowhere/redis.sock"), std::string::npos)
      << result.err;
}

TEST_F(ToolAcquire, WhoeverSaysThatBusyIsNoFailureIsNotToldOfIt) {
  raw_.set("nightly", "another's");
  const auto silent = run({"acquire", "nightly", "--busy-exit", "0"});
  EXPECT_EQ(silent.exit, 0);
  EXPECT_EQ(silent.err, "");
  const auto told = run({"acquire", "nightly", "--busy-exit", "3"});
  EXPECT_EQ(told.exit, 3);
  EXPECT_NE(told.err.find("nightly is held by another"), std::string::npos) << told.err;
}

TEST_F(ToolAcquire, HelpThatNobodyCouldReadIsNoSuccess) {
  for (const char* wanted : {"--help", "--version"}) {
    EXPECT_EQ(run({wanted}, {.output_file = "/dev/full"}).exit, 1) << wanted;
    EXPECT_EQ(run({wanted}).exit, 0) << wanted;
  }
}

TEST_F(ToolAcquire, WhereNobodyReadsItObeysSignalsAndTheLeaseIsGivenBack) {
  Tool tool({"acquire", "nightly", "--ttl", "10m"}, {.url = server_.url_unix(), .stuck_output = true});
  ASSERT_TRUE(becomes([&] { return raw_.exists("nightly"); }));
  tool.signal(SIGTERM);
  EXPECT_EQ(tool.wait(Millis(10'000)).exit, 128 + SIGTERM);
  EXPECT_FALSE(raw_.exists("nightly"));
}

TEST_F(ToolAcquire, ATokenThatIsToldTooLateIsAnError) {
  Tool tool({"acquire", "nightly", "--ttl", "600ms"}, {.url = server_.url_unix(), .stuck_output = true});
  ASSERT_TRUE(becomes([&] { return raw_.exists("nightly"); }));
  ASSERT_TRUE(becomes([&] { return !raw_.exists("nightly"); }));
  tool.unstick();
  const auto result = tool.wait();
  EXPECT_EQ(result.exit, 79);
  EXPECT_NE(result.err.find("was lost before its token was told"), std::string::npos) << result.err;
}

TEST_F(ToolAcquire, InMemoryNothingWouldBeExcluded) {
  for (const Words& arguments :
       {Words{"acquire", "k"}, Words{"renew", "k", "--token", "t"}, Words{"release", "k", "--token", "t"},
        Words{"show", "k"}, Words{"wait", "k"}, Words{"break", "k", "--yes"}}) {
    EXPECT_EQ(run_tool(arguments, {.url = "memory:"}).exit, 64) << arguments[0];
  }
}

TEST_F(ToolAcquire, RenewGivesAnotherFullTtl) {
  const std::string token = acquired("nightly");
  EXPECT_EQ(run({"renew", "nightly", "--token", token, "--ttl", "5m"}).exit, 0);
  EXPECT_GT(raw_.pttl("nightly"), 200'000);
  const auto json = run({"renew", "nightly", "--ttl", "5m", "--json"}, {.env = {{"REDLEASE_TOKEN", token}}});
  EXPECT_EQ(Json::parse(json.out).at("token"), token);
  EXPECT_GT(Json::parse(json.out).at("valid_ms"), 200'000);
  EXPECT_EQ(raw_.get("nightly"), token);
}

TEST_F(ToolAcquire, ReleaseFreesItOnce) {
  const std::string token = acquired("nightly");
  EXPECT_EQ(run({"release", "nightly"}, {.env = {{"REDLEASE_TOKEN", token}}}).exit, 0);
  EXPECT_FALSE(raw_.exists("nightly"));
  const auto again = run({"release", "nightly", "--token", token});
  EXPECT_EQ(again.exit, 79);
  EXPECT_NE(again.err.find("it is free"), std::string::npos) << again.err;
}

TEST_F(ToolAcquire, WhatAnotherHoldsIsNeitherRenewedNorReleased) {
  const std::string token = acquired("nightly");
  raw_.set("nightly", "someone");
  for (const auto* verb : {"renew", "release"}) {
    const auto result = run({verb, "nightly", "--token", token});
    EXPECT_EQ(result.exit, 79) << verb;
    EXPECT_NE(result.err.find("another holds it now"), std::string::npos) << result.err;
  }
  EXPECT_EQ(raw_.get("nightly"), "someone");
}

TEST_F(ToolAcquire, AKeyOfAnotherTypeIsNoLease) {
  raw_.command({"LPUSH", "nightly", "1"});
  EXPECT_EQ(run({"acquire", "nightly"}).exit, 65);
  EXPECT_EQ(run({"acquire", "nightly", "--wait", "forever"}).exit, 65);
}

TEST_F(ToolAcquire, WhoMayNotIsDenied) {
  raw_.command({"ACL", "SETUSER", "weak", "on", ">word", "~other:*", "+@all"});
  const std::string url = "unix://weak@" + server_.socket_path();
  const auto result = run_tool({"acquire", "nightly", "--url", url}, {.env = {{"REDLEASE_PASSWORD", "word"}}});
  EXPECT_EQ(result.exit, 77) << result.err;
  EXPECT_EQ(run_tool({"acquire", "nightly", "--url", url}, {.env = {{"REDLEASE_PASSWORD", "wrong"}}}).exit, 77);
}

TEST_F(ToolAcquire, APasswordComesFromAFileAndIsNeverShown) {
  raw_.command({"ACL", "SETUSER", "strong", "on", ">p@ss/w:rd", "~*", "&*", "+@all"});
  const std::string file = server_.dir() + "/password";
  FILE* out = std::fopen(file.c_str(), "w");
  std::fputs("p@ss/w:rd\r\n", out);
  std::fclose(out);
  const std::string url = "unix://strong@" + server_.socket_path();
  const auto result = run_tool({"acquire", "nightly", "--url", url, "--password-file", file});
  EXPECT_EQ(result.exit, 0) << result.err;
  const auto twice =
      run_tool({"acquire", "x", "--url", "unix://strong:secret@" + server_.socket_path(), "--password-file", file});
  EXPECT_EQ(twice.exit, 64);
  EXPECT_NE(twice.err.find("twice"), std::string::npos);
  EXPECT_EQ(twice.err.find("secret"), std::string::npos);
  const auto help =
      run_tool({"--help"}, {.env = {{"REDLEASE_URL", "redis://u:secret@h"}, {"REDLEASE_PASSWORD", "secret"}}});
  EXPECT_EQ(help.exit, 0);
  EXPECT_EQ(help.out.find("secret"), std::string::npos) << help.out;
}

TEST_F(ToolAcquire, WhereNoServerIsNothingWasDone) {
  const auto result = run_tool({"acquire", "nightly", "--url", "unix:///nowhere/redis.sock"});
  EXPECT_EQ(result.exit, 69);
  EXPECT_NE(result.err.find("unix:///nowhere/redis.sock"), std::string::npos) << result.err;
}

TEST_F(ToolAcquire, AServerThatDoesNotEvenTakeTheConnectionLeavesNothing) {
  server_.stop();
  const auto result = run({"acquire", "nightly", "--op-timeout", "200ms"});
  server_.cont();
  EXPECT_EQ(result.exit, 69) << result.err;
  EXPECT_FALSE(raw_.exists("nightly"));
}

TEST_F(ToolAcquire, AnAnswerThatDoesNotComeLeavesItUnknownAndNothingBehind) {
  // So that the server knows the scripts.
  ASSERT_EQ(run({"release", "other", "--token", acquired("other")}).exit, 0);
  const std::string token = acquired("held");
  ASSERT_EQ(run({"renew", "held", "--token", token}).exit, 0);
  FaultProxy proxy(server_.unix_socket());
  // A renewal would be asked again: that is as good twice.
  for (const Words& arguments : {Words{"acquire", "nightly"}, Words{"release", "held", "--token", token}}) {
    // The whole introduction (SETNAME and TIME), and the first bytes of the answer.
    proxy.on_next({.down = {.cut_after = 40}});
    Words all = arguments;
    all.insert(all.end(), {"--url", proxy.url(), "--json"});
    const auto result = run_tool(all);
    EXPECT_EQ(result.exit, 74) << arguments[0] << ": " << result.err;
    EXPECT_EQ(Json::parse(result.out).at("error").at("code"), "unknown_outcome");
  }
  EXPECT_FALSE(raw_.exists("held")) << "it was given back all the same";
  EXPECT_TRUE(becomes([&] { return !raw_.exists("nightly"); })) << "what the acquire got is withdrawn";
}

TEST_F(ToolAcquire, ARenewalThatCannotBePrintedStands) {
  const std::string token = acquired("nightly");
  const auto result =
      run({"renew", "nightly", "--token", token, "--json", "--ttl", "5m"}, {.output_file = "/dev/full"});
  EXPECT_EQ(result.exit, 1);
  EXPECT_EQ(raw_.get("nightly"), token);
  EXPECT_GT(raw_.pttl("nightly"), 200'000);
}

TEST_F(ToolAcquire, FlawedArgumentsAreAUsageErrorBeforeAnythingIsSent) {
  const std::vector<std::vector<std::string>> flawed{
      {"acquire"},
      {"acquire", ""},
      {"acquire", "nightly", "--ttl", "30"},
      {"acquire", "nightly", "--ttl", "0"},
      {"acquire", "nightly", "--ttl", "25h"},
      {"acquire", "nightly", "--wait", "soon"},
      {"acquire", "nightly", "--op-timeout", "20s"},
      {"acquire", "nightly", "--busy-exit", "256"},
      {"acquire", "nightly", "--nonsense"},
      {"acquire", "nightly", "another"},
      {"renew", "nightly"},
      {"release", "nightly", "--token", ""},
      {"acquire", "nightly", "--url", "http://127.0.0.1"},
      {"acquire", std::string(513, 'k')},
      {"break", "nightly"},
      {"nonsense"},
      {"acquire", "run", "--", "command"},
      {},
  };
  for (const auto& arguments : flawed) {
    const auto result = run(arguments);
    EXPECT_EQ(result.exit, 64) << ::testing::PrintToString(arguments) << result.err;
    EXPECT_TRUE(result.err.starts_with("redlease: ")) << result.err;
  }
  EXPECT_EQ(raw_.keys(), std::vector<std::string>{});
}

}  // namespace
}  // namespace redlease
