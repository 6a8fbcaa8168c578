#pragma once
// Part of store_suite.hpp: fenced values, and the store itself.
#include "store_suite_fixture.hpp"

namespace redlease {

TYPED_TEST_P(LeaseStoreSuite, AFencedValueRefusesOlderFences) {
  const auto set = [&](std::uint64_t fence) {
    const auto answer = this->store.fenced_set(this->key, "value", FencingToken{fence}, {});
    EXPECT_TRUE(answer.has_value()) << answer.error().detail;
    return std::pair(answer.value().accepted, static_cast<std::uint64_t>(answer.value().highest_seen));
  };
  constexpr std::uint64_t highest = (std::uint64_t{1} << 53) - 2;
  EXPECT_EQ(set(17), std::pair(true, std::uint64_t{17}));
  EXPECT_EQ(set(17), std::pair(true, std::uint64_t{17})) << "one holder may write many times";
  EXPECT_EQ(set(23), std::pair(true, std::uint64_t{23}));
  EXPECT_EQ(set(17), std::pair(false, std::uint64_t{23}));
  EXPECT_EQ(set(100), std::pair(true, std::uint64_t{100})) << "compared as numbers, not as text";
  EXPECT_EQ(set(highest), std::pair(true, highest));
  EXPECT_EQ(set(highest - 1), std::pair(false, highest));
  EXPECT_EQ(set(highest), std::pair(true, highest));
}

TYPED_TEST_P(LeaseStoreSuite, FencedValuesAndLeasesDoNotMix) {
  const FencingToken fence = this->grant("a");
  EXPECT_EQ(this->refused(this->store.fenced_set(this->key, "v", FencingToken{9}, {})), Errc::not_a_lease);
  EXPECT_EQ(this->grant("a"), fence) << "the lease was left alone";

  this->key = this->world.key();
  ASSERT_TRUE(this->store.fenced_set(this->key, "v", FencingToken{9}, {}).value().accepted);
  EXPECT_EQ(this->refused(this->acquire("a")), Errc::not_a_lease);
  for (const auto& renewal : {this->renew("a"), this->store.adopt(this->key, "a", this->hour, {})}) {
    EXPECT_EQ(to_string(renewal.outcome), "lost");
    EXPECT_EQ(renewal.cause, LossCause::taken);
  }
  const Released released = this->release("a");
  EXPECT_EQ(to_string(released.outcome), "not_held");
  EXPECT_EQ(released.cause, LossCause::taken);
  EXPECT_EQ(this->refused(this->store.inspect(this->key, {})), Errc::not_a_lease);
  EXPECT_EQ(this->refused(this->store.break_lease(this->key, {})), Errc::not_a_lease);
  const Fenced still = this->store.fenced_set(this->key, "v", FencingToken{8}, {}).value();
  EXPECT_FALSE(still.accepted) << "the fenced value was left alone";
  EXPECT_EQ(still.highest_seen, FencingToken{9});
}

TYPED_TEST_P(LeaseStoreSuite, PingAnswersAndTheServerHasAName) {
  EXPECT_TRUE(this->store.ping({}).has_value());
  EXPECT_FALSE(this->store.server().empty());
}

}  // namespace redlease
