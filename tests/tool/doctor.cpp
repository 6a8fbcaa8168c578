#include "tool/doctor.hpp"

#include <cctype>
#include <sstream>

namespace redlease {
inline namespace v0 {

Json Examined::finding(const std::string& id) const {
  for (const Json& check : json.at("checks")) {
    if (check.at("id") == id) return check;
  }
  return {};
}

std::string Examined::status(const std::string& id) const {
  const Json found = finding(id);
  return found.is_null() ? "" : found.at("status").get<std::string>();
}

Examined examine(const std::string& url, const Words& options) {
  Words arguments{"doctor", "--json", "--server-only"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const auto result = run_tool(arguments, {.url = url}, Millis(120'000));
  Json json = Json::parse(result.out, nullptr, false);
  EXPECT_TRUE(json.is_object()) << result.out << result.err;
  if (!json.is_object() || !json.contains("checks")) return {result.exit, Json{{"checks", Json::array()}}, result.err};
  EXPECT_EQ(json.at("exit"), result.exit);
  return {result.exit, std::move(json), result.err};
}

void expect_found(const Examined& examined, const std::string& id, const std::string& status,
                  const std::string& found) {
  const Json finding = examined.finding(id);
  ASSERT_FALSE(finding.is_null()) << id << " is not there: " << examined.json << examined.err;
  EXPECT_EQ(finding.at("status"), status) << finding;
  const auto text = [&](const char* field) { return finding.at(field).get<std::string>(); };
  EXPECT_NE((text("found") + text("mend")).find(found), std::string::npos) << finding;
  if (status == "fail") {
    EXPECT_EQ(examined.exit, 2);
  }
  if (status == "warn") {
    EXPECT_TRUE(examined.exit == 1 || examined.exit == 2) << examined.exit;
  }
  if (status == "fail" || status == "warn") {
    EXPECT_NE(text("risk"), "");
    EXPECT_NE(text("mend"), "");
  }
}

int do_as_told(const Examined& examined, const std::string& id, RawClient& server, const std::string& url) {
  std::istringstream mend(examined.finding(id).at("mend").get<std::string>());
  int done = 0;
  std::string text, command;
  while (std::getline(mend, text, '`') && std::getline(mend, command, '`')) {
    Words told = words(command);
    ++done;
    if (told.at(0) == "redlease") {
      const std::string typed = "REDLEASE_URL='" + url + "' '" REDLEASE_TOOL "'" + command.substr(told[0].size());
      EXPECT_EQ(std::system(typed.c_str()), 0) << typed;
    } else {
      const RawReply reply = server.command(told);
      EXPECT_NE(reply.kind, RawReply::Kind::error) << command << ": " << reply.text;
    }
  }
  return done;
}

void expect_mended(const std::string& url, const std::string& id, const Words& options) {
  Json last;
  const bool mended = becomes(
      [&] {
        const Examined examined = examine(url, options);
        last = examined.finding(id);
        return examined.status(id) == "ok";
      },
      Millis(60'000));
  EXPECT_TRUE(mended) << last;
}

Words words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

const Words& lease_rules() {
  static const Words rules = words(
      "&redlease:inbox:* +eval +evalsha +get +set +del +pttl +pexpire +time +zadd +zcard +zpopmin +zrange +zrank +zrem "
      "+zscore +hget +hset +hdel +publish +subscribe +pubsub +ping");
  return rules;
}

const Words& doctor_rules() {
  static const Words rules = words("+info +scan +config|get +client|setname +exists");
  return rules;
}

void make_user(RawClient& server, const std::string& keys, const Words& rules) {
  Words command{"ACL", "SETUSER", "limited", "reset", "on", ">word", keys, "resetchannels"};
  command.insert(command.end(), rules.begin(), rules.end());
  ASSERT_EQ(server.command(command).text, "OK");
}

std::string url_as_limited(const RedisServer& server) { return "unix://limited:word@" + server.socket_path(); }

}  // namespace v0
}  // namespace redlease
