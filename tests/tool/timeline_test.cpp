#include "cli/timeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cli/timeline_svg.hpp"
#include "tool/looks.hpp"

namespace redlease::cli {
namespace {

LeaseInfo held(const std::string& holder, std::uint64_t fence, int held_for, int remaining = 60'000) {
  return held_by(holder, fence, Millis(held_for), Millis(remaining));
}

LeaseInfo queued(LeaseInfo info, const std::vector<std::pair<std::string, int>>& queue) {
  for (const auto& [who, waited] : queue) {
    info.queue.push_back(who);
    info.queued_for.emplace_back(waited);
  }
  info.waiters = queue.size();
  return info;
}

// "who[held 100-900 f7 x, waited 0+-100]; …": + began before, ~ goes on, x expired.
std::string told(const KeyTimeline& key) {
  std::string out;
  for (const Lane& lane : key.lanes) {
    out += lane.who + "[";
    for (const Span& span : lane.spans) {
      out += &span == &lane.spans.front() ? "" : ", ";
      out += std::string(span.held ? "held " : "waited ") + std::to_string(span.from.count()) +
             (span.began_before ? "+" : "") + "-" + std::to_string(span.to.count()) + (span.goes_on ? "~" : "");
      if (span.fence != FencingToken{}) out += " f" + std::to_string(static_cast<std::uint64_t>(span.fence));
      if (span.expired) out += " x";
    }
    out += "] ";
  }
  for (const Millis at : key.unseen) out += "unseen " + std::to_string(at.count()) + " ";
  for (const auto& [from, to] : key.silent) {
    out += "silent " + std::to_string(from.count()) + "-" + std::to_string(to.count()) + " ";
  }
  return out.empty() ? out : out.substr(0, out.size() - 1);
}

class TimelineOf : public ::testing::Test {
 protected:
  void see(int at, const std::optional<LeaseInfo>& info) { builder_.see("k", Millis(at), info); }
  std::string ends(int length) const { return told(builder_.finish(Millis(length)).keys.at(0)); }
  TimelineBuilder builder_;
};

TEST_F(TimelineOf, AGrantBeginsWhenTheServerSaysAndEndsWhereItWasLastSeen) {
  see(0, LeaseInfo{});
  see(100, held("a:1", 7, 60));
  see(200, held("a:1", 7, 160));
  see(300, free_after(7));
  EXPECT_EQ(ends(1'000), "a:1[held 40-200 f7]");
}

TEST_F(TimelineOf, WhatWasThereBeforeAndWhatGoesOnIsMarkedSo) {
  see(0, held("a:1", 7, 5'000));
  see(100, held("a:1", 7, 5'100));
  EXPECT_EQ(ends(130), "a:1[held 0+-130~ f7]");
}

TEST_F(TimelineOf, AHandOverHasNoGapAndEndsTheWait) {
  see(0, queued(held("a:1", 7, 0), {}));
  see(100, queued(held("a:1", 7, 100), {{"b:2 late", 30}}));
  see(200, queued(held("a:1", 7, 200), {{"b:2 late", 131}}));
  auto b = held("b:2", 8, 50);
  b.label = "late";
  see(300, b);
  EXPECT_EQ(ends(400), "a:1[held 0-250 f7] b:2 late[waited 70-250, held 250-400~ f8]");
}

TEST_F(TimelineOf, WhatWasNotGivenBackInTimeExpired) {
  see(0, held("a:1", 7, 0, 150));
  see(100, held("a:1", 7, 100, 50));
  see(200, free_after(7));
  EXPECT_EQ(ends(400), "a:1[held 0-150 f7 x]");
}

TEST_F(TimelineOf, AnExpiryIsSeenToBehindTheNextGrant) {
  see(0, held("a:1", 7, 0, 150));
  see(300, held("b:2", 8, 100));
  EXPECT_EQ(ends(400), "a:1[held 0-150 f7 x] b:2[held 200-400~ f8]");
}

TEST_F(TimelineOf, AGrantBetweenTwoLooksLeavesAMarkByItsFence) {
  see(0, free_after(7));
  see(100, free_after(9));
  EXPECT_EQ(ends(200), "unseen 100");
  see(200, held("a:1", 10, 50));
  see(300, free_after(12));
  EXPECT_EQ(ends(400), "a:1[held 150-200 f10] unseen 100 unseen 300");
}

TEST_F(TimelineOf, OneWhoDoesSeveralThingsAtOnceHasSeveralLanes) {
  see(0, queued(held("a:1", 7, 0), {{"a:1", 0}, {"a:1", 0}}));
  see(300, queued(held("a:1", 8, 100), {{"a:1", 300}}));
  EXPECT_EQ(ends(400), "a:1[waited 0-200, held 200-400~ f8] a:1[held 0-200 f7] a:1[waited 0-400~]");
}

TEST_F(TimelineOf, OneWhoGaveUpWaitedUntilLastSeen) {
  see(0, queued(held("a:1", 7, 0), {{"b:2", 40}}));
  see(100, queued(held("a:1", 7, 100), {{"b:2", 140}}));
  see(200, held("a:1", 7, 200));
  see(300, queued(held("a:1", 7, 300), {{"b:2", 20}}));
  EXPECT_EQ(ends(400), "b:2[waited 0+-100, waited 280-400~] a:1[held 0-400~ f7]");
}

TEST_F(TimelineOf, AServerThatIsSilentLeavesAGapAndTheSameFenceBridgesIt) {
  see(0, held("a:1", 7, 0));
  see(100, std::nullopt);
  see(200, std::nullopt);
  see(300, held("a:1", 7, 300));
  see(400, std::nullopt);
  EXPECT_EQ(ends(500), "a:1[held 0-300~ f7] silent 0-300 silent 300-500");
}

TEST_F(TimelineOf, AForeignHolderHasNoFence) {
  const LeaseInfo foreign = held_by_another(Millis(500));
  see(0, LeaseInfo{});
  see(100, foreign);
  see(200, foreign);
  see(300, LeaseInfo{});
  EXPECT_EQ(ends(400), "another, not of this library[held 100-200]");
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}

class TimelineSvg : public ::testing::Test {
 protected:
  std::string drawn() const { return svg_of(builder_.finish(Millis(1'000)), caption_); }
  TimelineBuilder builder_;
  Caption caption_{"k at redis://host", "2026-03-01T12:00:00.000Z", Millis(100)};
};

TEST_F(TimelineSvg, ShowsHoldersWaitersFencesAndWhatIsNotKnown) {
  builder_.see("k", Millis(0), queued(held("a:1", 1234567890123456, 0, 900), {{"b:2", 0}}));
  builder_.see("k", Millis(900), held("b:2", 1234567890999999, 0));
  const std::string svg = drawn();
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_NE(svg.find(">1234567890123456</text>"), std::string::npos) << svg;
  EXPECT_NE(svg.find("a:1 held it, fence 1234567890123456: 0 ms to 900 ms, when it expired"), std::string::npos) << svg;
  EXPECT_NE(svg.find("b:2 waited: 0 ms to 900 ms"), std::string::npos) << svg;
  EXPECT_NE(svg.find("looking every 100 ms"), std::string::npos);
  EXPECT_NE(svg.find("fill=\"#ffffff\"/>"), std::string::npos);  // a ground of its own
  EXPECT_EQ(svg, drawn());
}

TEST_F(TimelineSvg, TextOfOthersStaysText) {
  auto info = held("a:1", 7, 0);
  info.label = "</text><script>&\"\x1b[31m\xff\xef\xbf\xbe";
  builder_.see("<k>&", Millis(0), info);
  caption_.title = "<k>";
  const std::string svg = drawn();
  EXPECT_EQ(svg.find("<script"), std::string::npos) << svg;
  EXPECT_EQ(svg.find("<k"), std::string::npos) << svg;
  EXPECT_NE(svg.find("&lt;/text&gt;&lt;script&gt;&amp;&quot;\\x1b[31m\\xff?"), std::string::npos) << svg;
  EXPECT_EQ(svg.find('\x1b'), std::string::npos);
  EXPECT_EQ(count(svg, "<text "), count(svg, "</text>"));
  EXPECT_EQ(count(svg, "<rect ") + count(svg, "<line "), count(svg, "/>") + count(svg, "</rect>"));
}

TEST_F(TimelineSvg, NothingAndNoTimeAtAllAreDrawnToo) {
  EXPECT_NE(drawn().find("Nothing was held"), std::string::npos);
  builder_.see("k", Millis(0), LeaseInfo{});
  EXPECT_NE(drawn().find("free all the time"), std::string::npos);
  const std::string svg = svg_of(builder_.finish(Millis(0)), caption_);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST_F(TimelineSvg, AnAxisOfAnyLengthHasFewTicks) {
  for (const Millis length : {Millis(10), Millis(1'234), Millis(59'999), Millis(3'600'000), Millis(86'400'000)}) {
    const std::string svg = svg_of(builder_.finish(length), caption_);
    EXPECT_GE(count(svg, "class=\"tick\""), 4U) << length.count();
    EXPECT_LE(count(svg, "class=\"tick\""), 11U) << length.count();
  }
}

}  // namespace
}  // namespace redlease::cli
