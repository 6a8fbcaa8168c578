#include "redlease/error.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace redlease {
namespace {

TEST(Errc, IsAnErrorCodeOfItsOwnCategory) {
  const std::error_code code = Errc::denied;
  EXPECT_EQ(code.category(), category());
  EXPECT_STREQ(code.category().name(), "redlease");
  EXPECT_EQ(code, Errc::denied);
  EXPECT_NE(code, Errc::busy);
  EXPECT_NE(code, std::error_code(code.value(), std::generic_category()));
}

TEST(Errc, EveryCodeHasASentenceOfItsOwn) {
  std::set<std::string> seen;
  for (int code = static_cast<int>(Errc::busy); code <= static_cast<int>(Errc::too_many_connections); ++code) {
    const std::string message = category().message(code);
    EXPECT_EQ(message.find("unknown redlease error"), std::string::npos) << code;
    EXPECT_TRUE(seen.insert(message).second) << "said twice: " << message;
  }
}

TEST(Errc, ACodeOfALaterVersionIsToldByItsNumber) {
  EXPECT_EQ(category().message(999), "unknown redlease error 999");
  EXPECT_EQ(category().message(0), "unknown redlease error 0");
}

TEST(Result, GivesItsValueOrThrowsItsError) {
  Result<int> good = 7;
  EXPECT_TRUE(good.has_value());
  EXPECT_EQ(good.value(), 7);
  EXPECT_THROW((void)good.error(), std::bad_variant_access);

  const Result<bool> bad = Error{Errc::not_a_lease, "key \"k\" holds a list"};
  EXPECT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().code, Errc::not_a_lease);
  try {
    (void)bad.value();
    FAIL() << "no exception";
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code(), Errc::not_a_lease);
    EXPECT_STREQ(e.what(), "key \"k\" holds a list: the key holds something that is not a lease");
  }
}

TEST(AcquireError, KeepsTheOutcomeTheCodeAndTheDetail) {
  const AcquireError error(AcquireOutcome::unavailable, {Errc::not_ready, "redis://h: LOADING"});
  EXPECT_EQ(error.outcome(), AcquireOutcome::unavailable);
  EXPECT_EQ(error.code(), Errc::not_ready);
  EXPECT_STREQ(error.what(), "redis://h: LOADING");
}

TEST(LeaseLost, KeepsTheCodeAndTheDetail) {
  const LeaseLost lost({Errc::lost, "lease \"k\""});
  EXPECT_EQ(lost.code(), Errc::lost);
  EXPECT_STREQ(lost.what(), "lease \"k\"");
}

}  // namespace
}  // namespace redlease
