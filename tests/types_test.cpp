#include "redlease/types.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <concepts>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "store/key_names.hpp"

namespace redlease {
namespace {

static_assert(!std::convertible_to<LeaseKey, OwnerToken> && !std::convertible_to<std::string, OwnerToken>);
static_assert(!std::constructible_from<LeaseKey, OwnerToken> && !std::constructible_from<OwnerToken, LeaseKey>);
static_assert(!std::constructible_from<LeaseKey, std::nullptr_t> && !std::constructible_from<LeaseKey, int>);

std::string refusal(const auto& name) {
  try {
    return "accepted: " + LeaseKey(name).str();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
}

TEST(LeaseKey, TakesAnyBytesAndAnyKindOfString) {
  const char* literal = "report:monthly";
  EXPECT_EQ(LeaseKey(literal).str(), "report:monthly");
  EXPECT_EQ(LeaseKey(std::string_view("a\0b", 3)).str(), std::string("a\0b", 3));
  EXPECT_EQ(LeaseKey(std::string(512, '\xff')).str().size(), 512U);
  EXPECT_EQ(LeaseKey("}{ \n").str(), "}{ \n");
  EXPECT_EQ(LeaseKey("x"), LeaseKey(std::string("x")));
  EXPECT_LT(LeaseKey("a"), LeaseKey("b"));
}

TEST(LeaseKey, RefusesEmptyNullAndOverlongNames) {
  const char* null = nullptr;
  EXPECT_EQ(refusal(""), "the name of a lease must not be empty");
  EXPECT_EQ(refusal(null), "the name of a lease must not be empty");
  EXPECT_EQ(refusal(std::string(513, 'x')), "the name of a lease must have at most 512 bytes; this one has 513");
}

TEST(LeaseKey, RefusesNamesThatCouldBeHelperKeys) {
  for (const auto* name : {"lease:meta", "x:lease:queue", "x:{x}lease:seen"}) {
    EXPECT_NE(refusal(name).find("must not end in lease:meta, lease:queue or lease:seen"), std::string::npos) << name;
  }
  EXPECT_NE(refusal("a\nlease:meta").find("\"a\\x0alease:meta\""), std::string::npos) << "one line for a log";
  for (const auto* name : {"lease:metal", "lease:meta ", "lease", "Lease:Meta"}) EXPECT_EQ(LeaseKey(name).str(), name);
}

TEST(Quoted, ShowsAnyNameOnOneLine) {
  EXPECT_EQ(quoted("stock:42"), "\"stock:42\"");
  EXPECT_EQ(quoted("a\"b\\"), "\"a\\\"b\\\\\"");
  EXPECT_EQ(quoted(std::string_view("\0\x7f\n", 3)), "\"\\x00\\x7f\\x0a\"");
  EXPECT_EQ(quoted("caf\xc3\xa9"), "\"caf\xc3\xa9\"");
}

TEST(OwnerToken, HandedOverTokensHave1To256Bytes) {
  EXPECT_EQ(OwnerToken("t").str(), "t");
  EXPECT_EQ(OwnerToken(std::string(256, '\0')).str().size(), 256U);
  EXPECT_THROW(OwnerToken(""), std::invalid_argument);
  EXPECT_THROW(OwnerToken(std::string(257, 't')), std::invalid_argument);
}

TEST(OwnerToken, IsClientIdAndNonceInHexadecimal) {
  const std::string token = OwnerToken::generate().str();
  ASSERT_EQ(token.size(), 16U + 1 + 32);
  EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), 16U) << token;
  EXPECT_EQ(token[16], '.') << token;
  EXPECT_EQ(token.find_first_not_of("0123456789abcdef", 17), std::string::npos) << token;
}

TEST(OwnerToken, ClientIdIsOnePerProcessAndTheNonceAlwaysNew) {
  constexpr std::size_t threads = 4;
  constexpr std::size_t each = 500;
  std::array<std::vector<std::string>, threads> made;
  {
    std::vector<std::jthread> crew;
    for (auto& mine : made) {
      crew.emplace_back([&mine] {
        for (std::size_t i = 0; i < each; ++i) mine.push_back(OwnerToken::generate().str());
      });
    }
  }
  std::set<std::string> clients;
  std::set<std::string> nonces;
  for (const auto& mine : made) {
    for (const auto& token : mine) {
      clients.insert(token.substr(0, 16));
      nonces.insert(token.substr(17));
    }
  }
  EXPECT_EQ(clients.size(), 1U);
  EXPECT_EQ(nonces.size(), threads * each);
}

std::string client_id_of_a_child() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string id = OwnerToken::generate().str().substr(0, 16);
    ::_exit(::write(ends[1], id.data(), id.size()) == 16 ? 0 : 1);
  }
  ::close(ends[1]);
  std::array<char, 16> id{};
  EXPECT_EQ(::read(ends[0], id.data(), id.size()), 16);
  ::close(ends[0]);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  return {id.begin(), id.end()};
}

TEST(OwnerToken, EveryForkedChildIsAClientOfItsOwn) {
  const std::string before = OwnerToken::generate().str().substr(0, 16);
  const std::string first = client_id_of_a_child();
  const std::string second = client_id_of_a_child();
  EXPECT_EQ((std::set{before, first, second}.size()), 3U);
  EXPECT_EQ(OwnerToken::generate().str().substr(0, 16), before);
}

TEST(ToString, NamesEveryValueAndDoesNotChokeOnOthers) {
  EXPECT_EQ(to_string(AcquireOutcome::acquired), "acquired");
  EXPECT_EQ(to_string(AcquireOutcome::busy), "busy");
  EXPECT_EQ(to_string(AcquireOutcome::unknown), "unknown");
  EXPECT_EQ(to_string(AcquireOutcome::unavailable), "unavailable");
  EXPECT_EQ(to_string(RenewOutcome::renewed), "renewed");
  EXPECT_EQ(to_string(RenewOutcome::lost), "lost");
  EXPECT_EQ(to_string(RenewOutcome::unknown), "unknown");
  EXPECT_EQ(to_string(RenewOutcome::unavailable), "unavailable");
  EXPECT_EQ(to_string(ReleaseOutcome::released), "released");
  EXPECT_EQ(to_string(ReleaseOutcome::not_held), "not_held");
  EXPECT_EQ(to_string(ReleaseOutcome::unknown), "unknown");
  EXPECT_EQ(to_string(ReleaseOutcome::unavailable), "unavailable");
  EXPECT_EQ(to_string(LossCause::deadline), "deadline");
  EXPECT_EQ(to_string(LossCause::gone), "gone");
  EXPECT_EQ(to_string(LossCause::taken), "taken");
  EXPECT_EQ(to_string(LossCause::max_hold), "max_hold");
  for (const int strange : {4, 255}) {
    EXPECT_EQ(to_string(static_cast<AcquireOutcome>(strange)), "?");
    EXPECT_EQ(to_string(static_cast<RenewOutcome>(strange)), "?");
    EXPECT_EQ(to_string(static_cast<ReleaseOutcome>(strange)), "?");
    EXPECT_EQ(to_string(static_cast<LossCause>(strange)), "?");
  }
}

// Redis Cluster's slot of a key, written from its specification: CRC16 (XMODEM) of the hash tag or of the whole key.
unsigned slot(std::string_view key) {
  if (const auto open = key.find('{'); open != std::string_view::npos) {
    const auto close = key.find('}', open);
    if (close != std::string_view::npos && close != open + 1) key = key.substr(open + 1, close - open - 1);
  }
  unsigned crc = 0;
  for (const char c : key) {
    crc ^= static_cast<unsigned>(static_cast<unsigned char>(c)) << 8;
    for (int bit = 0; bit < 8; ++bit) crc = ((crc & 0x8000U) != 0 ? crc << 1 ^ 0x1021U : crc << 1) & 0xffffU;
  }
  return crc & 16383U;
}

TEST(KeyNames, TheSlotFunctionOfThisTestIsRedis) {
  EXPECT_EQ(slot("123456789"), 0x31C3U);
  EXPECT_EQ(slot("foo"), 12182U);
  EXPECT_EQ(slot("{foo}bar"), slot("foo"));
  EXPECT_NE(slot("{}foo"), slot("foo"));
}

TEST(KeyNames, HelpersShareTheSlotOfTheirLease) {
  for (const auto* key : {"report:monthly", "a b\n", "{tag}x", "x{tag}", "{a}{b}", "{{x}y", "a}{b}", "x:{x}"}) {
    for (const auto suffix : {meta_suffix, queue_suffix, seen_suffix}) {
      const std::string name = helper_name(key, suffix);
      EXPECT_EQ(slot(name), slot(key)) << name;
    }
  }
}

TEST(KeyNames, FormDependsOnAValidHashTag) {
  EXPECT_EQ(helper_name("x", meta_suffix), "x:{x}lease:meta");
  EXPECT_EQ(helper_name("{t}x", queue_suffix), "{t}x:lease:queue");
  EXPECT_EQ(helper_name("{}x", seen_suffix), "{}x:{{}x}lease:seen");
}

TEST(KeyNames, NoTwoLeasesShareAHelperAndNoLeaseIsOne) {
  std::set<std::string> seen;
  const std::set<std::string> keys{"x",      "x:",      "x:{x}",     "{x}",   "{x}:",          "{}x",
                                   "{}x:{}", "x:{x}:{", "{x}:{{x}}", "a}b{c", "a}b{c:{a}b{c}", "{a"};
  for (const auto& key : keys) {
    for (const auto suffix : {meta_suffix, queue_suffix, seen_suffix}) {
      const std::string name = helper_name(key, suffix);
      EXPECT_TRUE(seen.insert(name).second) << name;
      EXPECT_THROW(LeaseKey{name}, std::invalid_argument);
    }
  }
}

}  // namespace
}  // namespace redlease
