#include "cli/duration.hpp"

#include <gtest/gtest.h>

namespace redlease::cli {
namespace {

TEST(Duration, ReadsOneUnitOrSeveralFromTheLargestDown) {
  EXPECT_EQ(parse_duration("250ms"), Millis(250));
  EXPECT_EQ(parse_duration("10s"), Millis(10'000));
  EXPECT_EQ(parse_duration("5m"), Millis(300'000));
  EXPECT_EQ(parse_duration("1h"), Millis(3'600'000));
  EXPECT_EQ(parse_duration("2d"), Millis(172'800'000));
  EXPECT_EQ(parse_duration("1h30m"), Millis(5'400'000));
  EXPECT_EQ(parse_duration("1.5s"), Millis(1'500));
  EXPECT_EQ(parse_duration("0.25h"), Millis(900'000));
  EXPECT_EQ(parse_duration("0"), Millis(0));
  EXPECT_EQ(parse_duration("0s"), Millis(0));
}

TEST(Duration, RefusesWhatCouldBeMeantInTwoWaysOrInNone) {
  for (const auto* text : {"", "30", "s", "-1s", "+1s", "1.s", ".5s", "1 s", "1s1h", "1s1s", "1sec", "1e3s", "0.5ms",
                           "1.0001s", "99999999999999999999s", "300000d", "ten seconds"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

TEST(Duration, IsShownInTheUnitThatPeopleWouldSay) {
  EXPECT_EQ(show(Millis(0)), "0 ms");
  EXPECT_EQ(show(Millis(999)), "999 ms");
  EXPECT_EQ(show(Millis(1'250)), "1.2 s");
  EXPECT_EQ(show(Millis(59'999)), "59 s");
  EXPECT_EQ(show(Millis(60'000)), "1 min");
  EXPECT_EQ(show(Millis(90'000)), "1 min 30 s");
  EXPECT_EQ(show(Millis(5'400'000)), "1 h 30 min");
  EXPECT_EQ(show(Millis(86'400'000)), "1 d");
  EXPECT_EQ(show(Millis(93'600'000)), "1 d 2 h");
}

}  // namespace
}  // namespace redlease::cli
