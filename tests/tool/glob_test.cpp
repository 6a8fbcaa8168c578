#include "cli/glob.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "support/raw_client.hpp"
#include "support/redis_server.hpp"

namespace redlease::cli {
namespace {

TEST(Glob, SaysOfRandomPatternsAndNamesWhatTheServerSays) {
  const RedisServer server;
  RawClient raw(server.unix_socket());
  std::mt19937 random(7);
  const auto word = [&](std::string_view letters, std::size_t most) {
    std::string out;
    for (std::size_t n = random() % (most + 1); n > 0; --n) out += letters[random() % letters.size()];
    return out;
  };
  std::vector<std::string> names;
  for (int i = 0; i < 300; ++i) {
    names.push_back("a" + word("abc*?[]^-\\", 6));  // no name is empty
    raw.set(names.back(), "x");
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  int matched = 0;
  for (int i = 0; i < 3'000; ++i) {
    const std::string pattern = word("a*", 1) + word("aabbc***??[[]]^--\\", 8);
    std::vector<std::string> ours;
    for (const auto& name : names) {
      if (glob_matches(pattern, name)) ours.push_back(name);
    }
    ASSERT_EQ(ours, raw.keys(pattern)) << pattern;
    matched += ours.empty() ? 0 : 1;
    for (const auto& name : ours) ASSERT_TRUE(name.starts_with(glob_head(pattern))) << pattern << " " << name;
  }
  EXPECT_GT(matched, 500);
  for (const auto& name : names) {
    EXPECT_EQ(raw.keys(glob_escaped(name)), std::vector<std::string>{name});
    EXPECT_EQ(glob_literal(glob_escaped(name)), name);
  }
}

TEST(Glob, ManyStarsTakeNoTime) {
  std::string pattern;
  for (int i = 0; i < 50; ++i) pattern += "a*";
  EXPECT_FALSE(glob_matches(pattern + "b", std::string(512, 'a')));
}

TEST(Glob, AWordWithoutWildcardsIsAName) {
  EXPECT_EQ(glob_literal("nightly"), "nightly");
  EXPECT_EQ(glob_literal("a\\*b"), "a*b");
  EXPECT_EQ(glob_literal("nightly*"), std::nullopt);
  EXPECT_EQ(glob_head("a\\*b[c]d"), "a*b");
}

}  // namespace
}  // namespace redlease::cli
