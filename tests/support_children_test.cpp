// The tests' own ground: processes and what they share.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <stdexcept>
#include <vector>

#include "support/children.hpp"
#include "support/shared_page.hpp"
#include "support/sleepless.hpp"

namespace redlease {
inline namespace v0 {
namespace {

TEST(SharedPage, SeesTwoInsideAtOnce) {
  SharedPage page;
  const auto statuses = run_children(2, [&](int) {
    page.enter();
    ++page.counter();
    if (!eventually([&] { return page.counter() == 2; })) throw std::runtime_error("the other did not come");
    page.leave();
  });
  EXPECT_EQ(statuses, (std::vector<int>{0, 0}));
  EXPECT_EQ(page.entries(), 2U);
  EXPECT_EQ(page.violations(), 1U);
}

TEST(SharedPage, HasNoComplaintAboutOneAfterTheOther) {
  SharedPage page;
  const auto statuses = run_children(4, [&](int index) {
    for (int round = 0; round < 100; ++round) {
      if (!eventually([&] { return page.counter() % 4 == index; })) throw std::runtime_error("no turn");
      if (!page.enter()) throw std::runtime_error("a violation");
      page.leave();
      ++page.counter();
    }
  });
  EXPECT_EQ(statuses, (std::vector<int>{0, 0, 0, 0}));
  EXPECT_EQ(page.entries(), 400U);
  EXPECT_EQ(page.violations(), 0U);
  EXPECT_EQ(page.died_inside(), 0U);
}

TEST(SharedPage, WhoDiesInsideHasLeft) {
  SharedPage page;
  Children children(1, [&](int) {
    page.enter();
    page.counter() = 1;
    while (true) ::pause();
  });
  ASSERT_TRUE(eventually([&] { return page.counter() == 1; }));
  EXPECT_FALSE(page.enter());
  page.leave();
  children.kill9(0);
  EXPECT_TRUE(page.enter());
  page.leave();
  EXPECT_EQ(page.violations(), 1U);
  EXPECT_EQ(page.died_inside(), 1U);
  EXPECT_EQ(children.wait(), std::vector<int>{-SIGKILL});
}

TEST(Children, TellTheirFatesAndStragglersAreKilled) {
  const auto statuses = run_children(
      4,
      [](int index) {
        if (index == 1) throw std::runtime_error("expected by the test");
        if (index == 2) ::_exit(7);
        if (index == 3) ::pause();
      },
      Millis(200));
  EXPECT_EQ(statuses, (std::vector<int>{0, 1, 7, -SIGKILL}));
}

}  // namespace
}  // namespace v0
}  // namespace redlease
