// run: many at once.
#include <algorithm>
#include <functional>
#include <memory>
#include <sstream>

#include "run_support.hpp"

namespace redlease {
namespace {

using namespace testing_support;

// mkdir succeeds for one at a time.
constexpr auto alone =
    "mkdir $D/inside || echo overlap >> $D/overlaps; echo $REDLEASE_FENCE >> $D/ran; sleep 0.02; rmdir $D/inside";

TEST_F(ToolRun, TwoNeverOverlapAndOneThatDoesNotWaitIsBusy) {
  REDLEASE_RUNNING(tool, {},
                   "mkdir $D/inside; echo $$ > $D/pid; while ! test -e $D/end; do sleep 0.02; done; rmdir $D/inside");
  EXPECT_EQ(script(alone).exit, 75);
  Tool second(line({"--wait", "forever"}, {"sh", "-c", alone}), with({}));
  ASSERT_TRUE(becomes([&] { return raw_.exists("nightly:{nightly}lease:queue"); }));
  EXPECT_FALSE(has("ran"));
  std::ofstream(file("end")) << "";
  EXPECT_EQ(tool.wait().exit, 0);
  EXPECT_EQ(second.wait().exit, 0);
  EXPECT_FALSE(has("overlaps"));
}

TEST_F(ToolRun, TwentyThatWaitEachRunOnceAndOneAtATime) {
  std::vector<std::unique_ptr<Tool>> tools;
  for (int i = 0; i < 20; ++i) {
    tools.push_back(std::make_unique<Tool>(line({"--wait", "forever", "--ttl", "20s"}, {"sh", "-c", alone}), with({})));
  }
  for (auto& tool : tools) {
    const auto result = tool->wait(Millis(60'000));
    EXPECT_EQ(result.exit, 0) << result.err;
  }
  EXPECT_FALSE(has("overlaps"));
  std::istringstream ran(content("ran"));
  std::vector<std::uint64_t> fences{std::istream_iterator<std::uint64_t>(ran), {}};
  EXPECT_EQ(fences.size(), 20U);
  EXPECT_TRUE(std::is_sorted(fences.begin(), fences.end(), std::less_equal<>()));
  EXPECT_FALSE(raw_.exists("nightly"));
}

}  // namespace
}  // namespace redlease
