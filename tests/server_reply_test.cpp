// Replies of all kinds from a server that says what the test wants: decided by an error's first word, never by its
// text.
#include "promise_support.hpp"
#include "support/scripted_server.hpp"

namespace redlease {
namespace {

using namespace testing_support;
using Command = ScriptedServer::Command;

const std::string time_reply = "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n";

// Answers the handshake, and `answer` to whatever script it is asked for.
ScriptedServer::Script answering(std::string answer) {
  return [answer = std::move(answer)](const Command& command) -> std::string {
    if (command[0] == "TIME") return time_reply;
    if (command[0] == "CLIENT") return "+OK\r\n";
    if (command[0] == "EVAL" && command[1] == "return 1") return ":1\r\n";
    if (command[0] == "EVALSHA" && command[1] == std::string(40, '0')) return "-NOSCRIPT none\r\n";
    return answer;
  };
}

struct Case {
  const char* reply;
  Errc code;
};
void PrintTo(const Case& tested, std::ostream* to) { *to << tested.reply; }

class ServerReply : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(ByFirstWord, ServerReply,
                         ::testing::Values(Case{"NOAUTH foo", Errc::denied}, Case{"WRONGPASS foo", Errc::denied},
                                           Case{"NOPERM foo", Errc::denied}, Case{"DENIED foo", Errc::denied},
                                           Case{"LOADING foo", Errc::not_ready}, Case{"READONLY foo", Errc::not_ready},
                                           Case{"OOM foo", Errc::not_ready}, Case{"NOREPLICAS foo", Errc::not_ready},
                                           Case{"MASTERDOWN foo", Errc::not_ready},
                                           Case{"CLUSTERDOWN foo", Errc::not_ready},
                                           Case{"MISCONF foo", Errc::not_ready}, Case{"BUSY foo", Errc::not_ready},
                                           Case{"TRYAGAIN foo", Errc::not_ready}, Case{"BUSY", Errc::not_ready},
                                           Case{"MOVED 1 127.0.0.1:1", Errc::unsupported},
                                           Case{"ASK 1 127.0.0.1:1", Errc::unsupported},
                                           Case{"CROSSSLOT foo", Errc::unsupported}),
                         [](const auto& tested) {
                           std::string word = tested.param.reply;
                           return std::to_string(tested.index) + word.substr(0, word.find(' '));
                         });

TEST_P(ServerReply, ProvesThatNothingWasExecutedAndIsClassifiedByItsFirstWord) {
  const ScriptedServer server(answering("-" + std::string(GetParam().reply) + "\r\n"));
  Client client(server.url());
  const Error error = error_of(client.try_acquire("some-key", limited(5s)));
  EXPECT_EQ(error.code, GetParam().code) << error.detail;
  EXPECT_TRUE(contains(error.detail, GetParam().reply)) << error.detail;
  expect_for_people(error, "some-key", "127.0.0.1:" + std::to_string(server.port()));
  Lease lease = client.adopt("some-key", OwnerToken("token"));
  EXPECT_EQ(lease.renew(), RenewOutcome::unavailable);
  EXPECT_EQ(lease.last_error().code, GetParam().code);
  EXPECT_EQ(lease.release(), ReleaseOutcome::unavailable);
  EXPECT_EQ(lease.last_error().code, GetParam().code);
  EXPECT_EQ(client.inspect("some-key").error().code, GetParam().code);
}

TEST_P(ServerReply, IsWaitedThroughOnlyIfItMayPass) {
  int refusals = 0;
  const auto refusing = answering("-" + std::string(GetParam().reply) + "\r\n");
  const ScriptedServer server([&](const Command& command) -> std::string {
    const bool granted = command[0] == "EVALSHA" && ++refusals > 3;
    return granted ? "*3\r\n:1\r\n$3\r\n123\r\n$16\r\n1700000000000000\r\n" : refusing(command);
  });
  Client client(server.url());
  if (GetParam().code == Errc::not_ready) {
    lease_of(client.acquire("some-key", {.wait = 30s})).abandon();
  } else {
    EXPECT_EQ(error_of(client.acquire("some-key", {.wait = forever})).code, GetParam().code);
  }
}

TEST(ServerReplies, NoscriptIsCuredByTheTextWhateverItSays) {
  for (const std::string text : {"NOSCRIPT foo", "NOSCRIPT", "NOSCRIPT No matching script."}) {
    const ScriptedServer server([&](const Command& command) -> std::string {
      if (command[0] == "TIME") return time_reply;
      if (command[0] == "EVALSHA") return "-" + text + "\r\n";
      if (command[0] == "EVAL") return "*3\r\n:1\r\n$3\r\n123\r\n$16\r\n1700000000000000\r\n";
      return "+OK\r\n";
    });
    Client client(server.url());
    Lease lease = lease_of(client.try_acquire("some-key", limited(5s)));
    EXPECT_EQ(lease.fencing_token(), FencingToken{123});
    lease.abandon();
  }
}

TEST(ServerReplies, MovedPointsToTheSchemeForClusters) {
  const ScriptedServer server(answering("-MOVED 1 127.0.0.1:1\r\n"));
  Client client(server.url());
  EXPECT_TRUE(contains(error_of(client.try_acquire("k")).detail, "redis+cluster://"));
}

TEST(ServerReplies, ARefusalOfSetnameIsNotFatal) {
  const ScriptedServer server([](const Command& command) -> std::string {
    if (command[0] == "TIME") return time_reply;
    if (command[0] == "CLIENT") return "-ERR unknown subcommand\r\n";
    return "*3\r\n:1\r\n$3\r\n123\r\n$16\r\n1700000000000000\r\n";
  });
  Client client(server.url());
  lease_of(client.try_acquire("some-key", limited(5s))).abandon();
}

TEST(ServerReplies, WhatIsNoAnswerToTheScriptIsNeverASuccess) {
  const std::vector<std::string> nonsense{"+OK\r\n",
                                          "$2\r\nhi\r\n",
                                          "*0\r\n",
                                          "*-1\r\n",
                                          "$-1\r\n",
                                          ":1\r\n",
                                          "*1\r\n:1\r\n",
                                          "*3\r\n:1\r\n:2\r\n:3\r\n",
                                          "*3\r\n:1\r\n$0\r\n\r\n$0\r\n\r\n",
                                          "*3\r\n:1\r\n$1\r\nx\r\n$1\r\ny\r\n",
                                          "*3\r\n+a\r\n+b\r\n+c\r\n",
                                          "*1\r\n*1\r\n*1\r\n:1\r\n",
                                          "*2\r\n:0\r\n:5\r\n",
                                          "*1\r\n:-1\r\n",
                                          "*1\r\n:0\r\n"};
  for (const std::string& reply : nonsense) {
    const ScriptedServer server(answering(reply));
    Client client(server.url());
    const AcquireResult result = client.try_acquire("some-key", limited(5s));
    EXPECT_EQ(result.outcome(), AcquireOutcome::unknown) << reply << describe(result);
  }
}

TEST(ServerReplies, RenewalsAndReleasesDoNotTakeNonsenseForAnAnswer) {
  for (const std::string reply :
       {"+OK\r\n", "$2\r\nhi\r\n", "*0\r\n", "$-1\r\n", ":7\r\n", "*1\r\n:1\r\n", ":-7\r\n"}) {
    std::string script_answer = "*3\r\n:1\r\n$3\r\n123\r\n$16\r\n1700000000000000\r\n";
    int scripts = 0;
    const ScriptedServer server([&](const Command& command) -> std::string {
      if (command[0] == "TIME") return time_reply;
      if (command[0] == "CLIENT") return "+OK\r\n";
      return ++scripts == 1 ? script_answer : reply;
    });
    Client client(server.url());
    Lease lease = lease_of(client.try_acquire("some-key", limited(5s)));
    EXPECT_EQ(lease.renew(), RenewOutcome::unknown) << reply;
    EXPECT_TRUE(lease.held()) << reply;
    EXPECT_EQ(lease.release(), ReleaseOutcome::unknown) << reply;
  }
}

TEST(ServerReplies, GarbageClosesTheConnectionAndIsNeverASuccess) {
  for (const std::string& reply :
       {std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), std::string("*2000000000\r\n"),
        std::string("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"), std::string("%1\r\n"),
        std::string("\0\0\0\0", 4), std::string("*-7\r\n"), std::string("$-7\r\n"), std::string(":abc\r\n")}) {
    const ScriptedServer server(answering(reply));
    Client client(server.url());
    const Stopwatch watch;
    Claim claim = claim_of(client.try_acquire("some-key", limited(5s)));
    EXPECT_LE(watch.elapsed_ms(), 4s) << "it was waited for: " << reply;
    expect_for_people(claim.error(), "some-key", "127.0.0.1:" + std::to_string(server.port()));
    std::move(claim).abandon();
  }
}

TEST(ServerReplies, AServerThatIsNoRedisIsToldAsSuch) {
  const ScriptedServer server([](const Command&) { return "HTTP/1.1 400 Bad Request\r\n\r\n"; });
  Client client(server.url());
  const Error error = error_of(client.try_acquire("some-key", limited(5s)));
  EXPECT_EQ(error.code, Errc::bad_reply);
  EXPECT_TRUE(contains(error.detail, "Is it a Redis or Valkey server?")) << error.detail;
}

TEST(ServerReplies, AHangUpBehindTheRequestIsADoubt) {
  const ScriptedServer server(answering(std::string(hang_up)));
  Client client(server.url());
  Claim claim = claim_of(client.try_acquire("some-key", limited(5s)));
  std::move(claim).abandon();
}

TEST(ServerReplies, ASyntaxErrorIsNotRetriedAsContention) {
  // Runs scripts, but not ours: in doubt each time, and a wait ends with the doubt.
  const ScriptedServer server(answering("-ERR syntax error\r\n"));
  Client client(server.url());
  Claim claim = claim_of(client.try_acquire("some-key", limited(5s)));
  EXPECT_TRUE(contains(claim.error().detail, "ERR syntax error")) << claim.error().detail;
}

}  // namespace
}  // namespace redlease
