// Users who may do less than docs/acl.md says: each rule that is missing is named, and granting it mends the finding.
#include <algorithm>

#include "tool/doctor.hpp"

namespace redlease {
namespace {

struct Missing {
  std::string name, rule, check, status;
};

Words everything() {
  Words rules = lease_rules();
  rules.insert(rules.end(), doctor_rules().begin(), doctor_rules().end());
  return rules;
}

std::vector<Missing> missing_rules() {
  std::vector<Missing> rows;
  const auto add = [&](const std::string& rules, const std::string& check, const std::string& status) {
    for (const std::string& rule : words(rules)) {
      std::string name;
      for (const char c : rule.substr(1)) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
      rows.push_back({name, rule, check, status});
    }
  };
  add("+eval +evalsha +get +set +del +pttl +pexpire +time", "acl.lease", "fail");
  add("+zadd +zcard +zpopmin +zrange +zrank +zrem +zscore +hget +hset +hdel +ping", "acl.queue", "warn");
  add("+publish +subscribe +pubsub &redlease:inbox:*", "acl.wake", "warn");
  add("+info", "memory.evictions", "unknown");
  add("+scan", "keys.expiry", "unknown");
  add("+config|get", "durability.persistence", "unknown");
  // Nothing suffers from these.
  add("+exists", "acl.fenced_set", "ok");
  add("+client|setname", "acl.name", "ok");
  return rows;
}

class DoctorAcl : public ::testing::TestWithParam<Missing> {};

TEST_P(DoctorAcl, ARuleThatIsMissingIsNamedAndGrantingItMends) {
  const Missing& missing = GetParam();
  RedisServer server({"appendonly yes"});
  RawClient raw(server.unix_socket());
  Words rules = everything();
  std::erase(rules, missing.rule);
  make_user(raw, "~billing:*", rules);
  const std::string url = url_as_limited(server);
  const Examined before = examine(url, {"--prefix", "billing:"});
  expect_found(before, missing.check, missing.status, missing.rule);
  EXPECT_GT(before.json.at("summary").at("refused_commands"), 0);
  // No other rule is made responsible.
  for (const std::string& rule : words("acl.lease acl.queue acl.wake")) {
    const bool concerned =
        rule == missing.check || missing.status == "fail" || (missing.rule.starts_with("+h") && rule == "acl.queue");
    if (!concerned) {
      EXPECT_EQ(before.status(rule), "ok") << before.finding(rule);
    }
  }
  EXPECT_EQ(do_as_told(before, missing.check, raw, url), 1) << before.finding(missing.check);
  const Examined after = examine(url, {"--prefix", "billing:"});
  EXPECT_EQ(after.status(missing.check), "ok") << after.finding(missing.check);
  EXPECT_EQ(after.json.at("summary").at("refused_commands"), 0) << after.json;
  EXPECT_EQ(raw.keys(), Words{});
}

INSTANTIATE_TEST_SUITE_P(Rules, DoctorAcl, ::testing::ValuesIn(missing_rules()),
                         [](const auto& row) { return row.param.name; });

void PrintTo(const Missing& missing, std::ostream* out) { *out << missing.name; }

class DoctorUsers : public ::testing::Test {
 protected:
  RedisServer server_{{"appendonly yes"}};
  RawClient raw_{server_.unix_socket()};
  const std::string url_{url_as_limited(server_)};
};

TEST_F(DoctorUsers, OneWhoMayNotTouchTheKeysIsToldOfTheKeysAlone) {
  make_user(raw_, "~other:*", everything());
  const Examined before = examine(url_, {"--prefix", "a*[b]:"});
  expect_found(before, "acl.lease", "fail", "~a\\*\\[b\\]:*");
  EXPECT_EQ(before.status("acl.queue"), "unknown");
  EXPECT_EQ(before.status("acl.fenced_set"), "unknown");
  EXPECT_EQ(before.status("lease.cycle"), "unknown");
  EXPECT_EQ(do_as_told(before, "acl.lease", raw_, url_), 1);
  const Examined after = examine(url_, {"--prefix", "a*[b]:"});
  for (const auto* check : {"acl.lease", "acl.queue", "acl.fenced_set", "lease.cycle", "lease.handover"}) {
    EXPECT_EQ(after.status(check), "ok") << after.finding(check);
  }
  EXPECT_EQ(raw_.keys(), Words{});
}

TEST_F(DoctorUsers, OneWhoMayOnlyReadTheKeysIsToldSo) {
  make_user(raw_, "%R~billing:*", everything());
  const Examined before = examine(url_, {"--prefix", "billing:"});
  expect_found(before, "acl.lease", "fail", "~billing:*");
}

TEST_F(DoctorUsers, OneWhoMayDoNothingIsAFailureAndNothingIsCalledWell) {
  make_user(raw_, "~*", {});
  const Examined examined = examine(url_);
  EXPECT_EQ(examined.exit, 2);
  EXPECT_EQ(examined.status("acl.lease"), "fail");
  for (const Json& check : examined.json.at("checks")) {
    const bool harmless = check.at("id") == "acl.name" || check.at("id") == "acl.fenced_set";
    if (!harmless) {
      EXPECT_NE(check.at("status"), "ok") << check;
    }
  }
}

TEST_F(DoctorUsers, WithoutInfoTheSettingsTellWhatTheyCan) {
  Words rules = everything();
  std::erase(rules, "+info");
  make_user(raw_, "~*", rules);
  raw_.config_set("maxmemory", "100mb");
  raw_.config_set("maxmemory-policy", "volatile-lru");
  const Examined examined = examine(url_);
  expect_found(examined, "memory.policy", "fail", "volatile-lru");
  EXPECT_EQ(examined.status("durability.persistence"), "ok");
  EXPECT_EQ(examined.status("memory.evictions"), "unknown");
}

TEST_F(DoctorUsers, ACommandThatWasRenamedIsNotCalledAllowed) {
  RedisServer renamed({"rename-command EVAL \"\"", "rename-command CONFIG \"\"", "rename-command INFO \"\"",
                       "rename-command ZADD \"\""});
  const Examined examined = examine(renamed.url_unix());
  expect_found(examined, "acl.lease", "fail", "not on this server: +eval");
  expect_found(examined, "acl.queue", "warn", "not on this server: +zadd");
  for (const auto* check : {"memory.policy", "durability.persistence", "topology.product"}) {
    EXPECT_NE(examined.status(check), "ok") << examined.finding(check);
  }
  // What it says: the same without those lines.
  RedisServer mended;
  EXPECT_EQ(examine(mended.url_unix()).status("acl.lease"), "ok");
}

}  // namespace
}  // namespace redlease
