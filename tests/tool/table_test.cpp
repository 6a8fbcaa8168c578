#include "cli/table.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

namespace redlease::cli {
namespace {

TEST(Table, CountsColumnsAndNotBytes) {
  EXPECT_EQ(columns_of("nightly"), 7U);
  EXPECT_EQ(columns_of("über"), 4U);
  EXPECT_EQ(columns_of("u\u0308ber"), 4U);
  EXPECT_EQ(columns_of("日本"), 4U);
  EXPECT_EQ(columns_of("\xff\xe3"), 2U);
}

TEST(Table, CutsBetweenCharacters) {
  EXPECT_EQ(fitted("nightly", 7), "nightly");
  EXPECT_EQ(fitted("nightly", 4), "nig…");
  EXPECT_EQ(fitted("日本語", 5), "日本…");
  EXPECT_EQ(fitted("日本語", 4), "日…");
  EXPECT_EQ(fitted("nightly", 1), "…");
  EXPECT_EQ(fitted("nightly", 0), "");
}

class TableLines : public ::testing::Test {
 protected:
  std::vector<std::string> lines(std::size_t width) const {
    const std::vector<std::vector<Cell>> rows{{{"nightly report of all"}, {"host:1"}, {"17"}},
                                              {{"b"}, {"another host:2"}, {"4"}}};
    return table_lines({{"KEY", false, true, 0}, {"HOLDER", false, true, 0}, {"N", true, false, 1}}, rows, width,
                       Screen(-1));
  }
};

TEST_F(TableLines, AreAsWideAsTheyNeedWhereThereIsRoom) {
  EXPECT_EQ(lines(0), (std::vector<std::string>{"KEY                    HOLDER           N",
                                                "nightly report of all  host:1          17",
                                                "b                      another host:2   4"}));
  EXPECT_EQ(lines(0), lines(200));
}

TEST_F(TableLines, LoseFirstLettersThenColumns) {
  EXPECT_EQ(lines(34)[1], "nightly repor…  host:1          17");
  EXPECT_EQ(lines(26)[0], "KEY           HOLDER");
  EXPECT_EQ(lines(12)[2], "b      anot…");
}

TEST_F(TableLines, AreNeverWiderThanTheScreen) {
  for (std::size_t width = 1; width < 60; ++width) {
    for (const auto& line : lines(width)) EXPECT_LE(columns_of(line), width) << line;
  }
}

}  // namespace
}  // namespace redlease::cli
