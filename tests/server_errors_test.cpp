#include "wire/server_errors.hpp"

#include <gtest/gtest.h>

#include <string>

using namespace redlease;

TEST(ServerErrors, TheFirstWordDecidesWhateverTheTextSays) {
  struct Case {
    const char* word;
    Errc code;
    Proof proof;
  };
  for (const Case& c :
       {Case{"NOSCRIPT", Errc::server_error, Proof::needs_eval}, Case{"NOAUTH", Errc::denied, Proof::not_executed},
        Case{"WRONGPASS", Errc::denied, Proof::not_executed}, Case{"NOPERM", Errc::denied, Proof::not_executed},
        Case{"LOADING", Errc::not_ready, Proof::not_executed}, Case{"READONLY", Errc::not_ready, Proof::not_executed},
        Case{"OOM", Errc::not_ready, Proof::not_executed}, Case{"NOREPLICAS", Errc::not_ready, Proof::not_executed},
        Case{"MASTERDOWN", Errc::not_ready, Proof::not_executed},
        Case{"CLUSTERDOWN", Errc::not_ready, Proof::not_executed},
        Case{"MISCONF", Errc::not_ready, Proof::not_executed}, Case{"BUSY", Errc::not_ready, Proof::not_executed},
        Case{"TRYAGAIN", Errc::not_ready, Proof::not_executed}, Case{"MOVED", Errc::unsupported, Proof::not_executed},
        Case{"CROSSSLOT", Errc::unsupported, Proof::not_executed}, Case{"ERR", Errc::server_error, Proof::may_have_run},
        Case{"WHATEVER", Errc::server_error, Proof::may_have_run}}) {
    for (const std::string& text :
         {std::string(c.word), std::string(c.word) + " foo", std::string(c.word) + " busy NOSCRIPT ERR"}) {
      EXPECT_EQ(classify(text).code, c.code) << text;
      EXPECT_EQ(classify(text).proof, c.proof) << text;
    }
  }
  EXPECT_EQ(classify("").proof, Proof::may_have_run);
}

TEST(ServerErrors, ARefusalInsideAScriptIsReadInEveryServersForm) {
  EXPECT_EQ(classify_refusal("OOM command not allowed"), Errc::not_ready);
  EXPECT_EQ(classify_refusal("-OOM command not allowed"), Errc::not_ready);
  EXPECT_EQ(classify_refusal("@user_script: 12: -OOM command not allowed"), Errc::not_ready);
  EXPECT_EQ(classify_refusal("ERR The user executing the script can't run this command or subcommand"), Errc::denied);
  EXPECT_EQ(classify_refusal("NOPERM no"), Errc::denied);
  EXPECT_EQ(classify_refusal("WRONGTYPE Operation against"), Errc::not_a_lease);
  EXPECT_EQ(classify_refusal("@"), Errc::denied);
  EXPECT_EQ(classify_refusal(""), Errc::denied);
}

TEST(ServerErrors, AdviceNamesTheRulesThatADeniedUserLacks) {
  EXPECT_NE(advice(Errc::denied, "NOPERM no").find("+evalsha"), std::string_view::npos);
  EXPECT_NE(advice(Errc::unsupported, "MOVED 1 a:1").find("redis+cluster://"), std::string_view::npos);
  EXPECT_EQ(advice(Errc::server_error, "ERR x"), "");
}

TEST(ServerErrors, ArgumentsThatAServerRepeatsAreCutOff) {
  EXPECT_EQ(quotable("ERR unknown command 'AUTH', with args beginning with: 'secret' "), "ERR unknown command 'AUTH'");
  EXPECT_EQ(quotable("OOM no"), "OOM no");
}
