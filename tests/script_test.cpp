#include "redlease/wire/script.hpp"

#include <gtest/gtest.h>

#include <string>

using namespace redlease;

// The test vectors of FIPS 180-4 and RFC 3174, and the lengths around the padding's edges (from sha1sum).
static_assert(Script("abc").sha() == "a9993e364706816aba3e25717850c26c9cd0d89d");
static_assert(Script("").sha() == "da39a3ee5e6b4b0d3255bfef95601890afd80709");
static_assert(Script("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq").sha() ==
              "84983e441c3bd26ebaae4aa1f95129e5e54670f1");

namespace {

std::string sha1_of(char c, std::size_t n) {
  const auto hex = sha1_hex(std::string(n, c));
  return {hex.data(), hex.size()};
}

}  // namespace

TEST(Script, HashesEveryLengthAroundThePadding) {
  EXPECT_EQ(sha1_of('a', 55), "c1c8bbdc22796e28c0e15163d20899b65621d65a");
  EXPECT_EQ(sha1_of('a', 56), "c2db330f6083854c99d4b5bfb6e8f29f201be699");
  EXPECT_EQ(sha1_of('a', 63), "03f09f5b158a7a8cdad920bddc29b81c18a551f5");
  EXPECT_EQ(sha1_of('a', 64), "0098ba824b5c16427bd7a1122a5a442a25ec644d");
  EXPECT_EQ(sha1_of('a', 1'000'000), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}
