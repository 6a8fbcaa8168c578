#include "redlease/wire/endpoint.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace redlease {
inline namespace v0 {
namespace {

std::string refusal(const std::string& url) {
  try {
    (void)parse_endpoint(url);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  ADD_FAILURE() << "accepted: " << url;
  return {};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

TEST(Endpoint, ReadsWhatAUrlLeavesOutAsItsDefault) {
  const Endpoint e = parse_endpoint("redis://localhost");
  EXPECT_EQ(e.kind, Endpoint::Kind::tcp);
  EXPECT_EQ(e.host, "localhost");
  EXPECT_EQ(e.port, 6379);
  EXPECT_EQ(e.db, 0U);
  EXPECT_EQ(e.user, "");
  EXPECT_FALSE(e.password);
  EXPECT_EQ(e.display, "redis://localhost:6379/0");
}

TEST(Endpoint, ReadsEveryPart) {
  const Endpoint e = parse_endpoint("rediss://al%69ce:p%40ss%3a%2F@[fe80::1%25eth0]:7000/12");
  EXPECT_EQ(e.kind, Endpoint::Kind::tls);
  EXPECT_EQ(e.host, "fe80::1%eth0");
  EXPECT_EQ(e.port, 7000);
  EXPECT_EQ(e.db, 12U);
  EXPECT_EQ(e.user, "alice");
  EXPECT_EQ(e.password, "p@ss:/");
  EXPECT_EQ(e.display, "rediss://[fe80::1%eth0]:7000/12");
}

TEST(Endpoint, ReadsUserAndPasswordInAllTheirShapes) {
  struct Case {
    std::string url, user;
    std::optional<std::string> password;
  };
  for (const Case& c : std::vector<Case>{{"redis://:pass@h", "", "pass"},
                                         {"redis://user@h", "user", std::nullopt},
                                         {"redis://user:@h", "user", ""},
                                         {"redis://@h", "", std::nullopt},
                                         {"redis://u:a:b@h", "u", "a:b"},
                                         {"redis://u:a@b@h", "u", "a@b"},
                                         {"redis://u:%25%C3%A9@h", "u", "%\xC3\xA9"},
                                         {"unix://u:p@/s", "u", "p"},
                                         {"unix://:a?b@/s", "", "a?b"}}) {
    const Endpoint e = parse_endpoint(c.url);
    EXPECT_EQ(e.user, c.user) << c.url;
    EXPECT_EQ(e.password, c.password) << c.url;
  }
}

TEST(Endpoint, ReadsHostsAndPorts) {
  EXPECT_EQ(parse_endpoint("redis://[::1]").display, "redis://[::1]:6379/0");
  EXPECT_EQ(parse_endpoint("redis://[::1]:1/3").display, "redis://[::1]:1/3");
  EXPECT_EQ(parse_endpoint("redis://10.0.0.1:65535/").display, "redis://10.0.0.1:65535/0");
  EXPECT_EQ(parse_endpoint("redis://my_host.example-1.org:6380").display, "redis://my_host.example-1.org:6380/0");
}

TEST(Endpoint, ReadsUnixSockets) {
  const Endpoint e = parse_endpoint("unix://bob:secret@/tmp/a%20b@c.sock?db=7");
  EXPECT_EQ(e.kind, Endpoint::Kind::unix_socket);
  EXPECT_EQ(e.path, "/tmp/a b@c.sock");
  EXPECT_EQ(e.db, 7U);
  EXPECT_EQ(e.user, "bob");
  EXPECT_EQ(e.password, "secret");
  EXPECT_EQ(e.display, "unix:///tmp/a%20b@c.sock?db=7");
  EXPECT_EQ(parse_endpoint("unix:///tmp/x.sock").display, "unix:///tmp/x.sock?db=0");
  const std::string longest = "/" + std::string(106, 'x');
  EXPECT_EQ(parse_endpoint("unix://" + longest).path, longest);
}

TEST(Endpoint, RefusesEverythingElseAndSaysWhatIsWrong) {
  struct Case {
    std::string url, says;
  };
  for (const Case& c : std::vector<Case>{
           {"", "does not begin with redis:"},
           {"localhost:6379", "does not begin with redis:"},
           {"://h", "does not begin with redis:"},
           {"http://h", "unknown scheme 'http'"},
           {"REDIS://h", "unknown scheme 'REDIS'"},
           {"redis+sentinel://h", "'redis+sentinel' is not supported by this version yet"},
           {"redis+cluster://h", "'redis+cluster' is not supported by this version yet"},
           {"quorum://h", "'quorum' is not supported by this version yet"},
           {"redis://", "host is missing"},
           {"redis:///0", "host is missing"},
           {"redis://:6379", "host is missing"},
           {"redis://u:p@", "host is missing"},
           {"redis://u:p@:1", "host is missing"},
           {"redis://h:0", "port is not a number from 1 to 65535"},
           {"redis://h:70000", "port is not a number from 1 to 65535"},
           {"redis://h:65536", "port is not a number from 1 to 65535"},
           {"redis://h:", "port is not a number"},
           {"redis://h:+1", "port is not a number"},
           {"redis://h:1x", "port is not a number"},
           {"redis://h:-1", "port is not a number"},
           {"redis://::1", "IPv6 address needs brackets"},
           {"redis://fe80::1:6379", "IPv6 address needs brackets"},
           {"redis://[::1", "has no ']'"},
           {"redis://[::1]x", "after ']' only a port"},
           {"redis://[]", "not an IPv6 address"},
           {"redis://[127.0.0.1]", "not an IPv6 address"},
           {"redis://[fe80::1%25]", "not an IPv6 address"},
           {"redis://h#1", "host is not a name or an address"},
           {"redis://h%41", "host is not a name or an address"},
           {"redis://" + std::string(254, 'h'), "host is not a name or an address"},
           {"redis://h/x", "database is not a number"},
           {"redis://h/1/2", "database is not a number"},
           {"redis://h/-1", "database is not a number"},
           {"redis://h/0#junk", "database is not a number"},
           {"redis://h/99999999999", "database is not a number"},
           {"redis://h/4294967295", "database is not a number"},
           {"redis://h/0 ", "space, a line end or a control"},
           {"redis://h/0\n", "space, a line end or a control"},
           {std::string("redis://h\0x", 10), "space, a line end or a control"},
           {"redis://h?db=1", "unknown query key 'db'"},
           {"redis://h/1?timeout=5", "unknown query key 'timeout'"},
           {"redis://h/1?", "empty key"},
           {"unix:///s?dB=1", "unknown query key 'dB'"},
           {"unix:///s?db=1&x=2", "unknown query key 'x'"},
           {"unix:///s?db=1&db=1", "db twice"},
           {"unix:///s?db=1&", "empty key"},
           {"unix:///s?db", "database is not a number"},
           {"unix:///s?db=", "database is not a number"},
           {"unix:///s?db=1x", "database is not a number"},
           {"unix://", "path of the socket is missing"},
           {"unix:///", "path of the socket is missing"},
           {"unix://u:p@", "path of the socket is missing"},
           {"unix://host/s", "only user:password@ may stand before it"},
           {"unix:///a%2", "'%' in the path"},
           {"unix:///a%00", "%00 in the path"},
           {"unix:///" + std::string(107, 'x'), "108 bytes, and the system takes 107"},
           {"redis://u%:p@h", "'%' in the user"},
           {"redis://u:p%4@h", "'%' in the password"},
           {"redis://u:p%zz@h", "'%' in the password"},
           {"redis://u:p%00@h", "%00 in the password"},
           {"redis://u:p/1@h", "an '@' after the host"},
           {"redis://u:p?1@h", "an '@' after the host"},
       }) {
    const std::string says = refusal(c.url);
    EXPECT_TRUE(contains(says, c.says)) << c.url << "\n" << says;
    EXPECT_TRUE(contains(says, "for example redis://127.0.0.1:6379/0")) << says;
  }
}

TEST(Endpoint, NeverShowsUserOrPasswordWhateverIsWrongAroundThem) {
  const std::string user = "Us3rN";
  for (const std::string password :
       {"S3cret", "S3c/ret", "S3c?ret", "S3c?S3cret=1", "S3c:ret", "S3c@ret", "S3c%ret", "S3c#ret", "S3c&ret",
        "S3c[ret", "/S3cret", "S3c ret", "S3c://ret", "?S3cret&S3c"}) {
    for (const std::string scheme : {"redis://", "rediss://", "unix://", "http://", "quorum://", ""}) {
      for (const std::string rest : {"@", "@:1", "@h:x", "@h:70000", "@h/x", "@h/1?x=1", "@h/1?db=1", "@/s?x=1",
                                     "@/s?db=x", "@/a%zz", "", "/0", ":1", "@[::1", "@h ", "@h?x", "@a:b:c"}) {
        for (const std::string& before : {user + ":", std::string(":")}) {
          const std::string url = scheme + before + password + rest;
          try {
            const Endpoint e = parse_endpoint(url);
            EXPECT_FALSE(contains(e.display, user)) << url << "\n" << e.display;
          } catch (const std::invalid_argument& e) {
            for (const std::string& secret : {user, std::string("S3c"), std::string("ret")}) {
              const std::string says = e.what();
              EXPECT_FALSE(contains(says, secret)) << url << "\n" << says;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace v0
}  // namespace redlease
