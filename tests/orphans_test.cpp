#include "service/orphans.hpp"

#include <gtest/gtest.h>

#include <string>

namespace redlease {
namespace {

using namespace std::chrono_literals;
using Span = LeaseClock::duration;

constexpr Deadline start = Deadline{} + 1h;
constexpr Millis op_timeout = 100ms;

struct Bench {
  Orphans all;
  std::uint32_t number{0};  // of the latest try
  std::uint64_t added{0};   // their tickets

  std::uint64_t add(Deadline spent_by = Deadline::min(), Deadline over = start + 1h, std::string token = "t") {
    EXPECT_FALSE(all.add({"k", std::move(token), op_timeout, spent_by, over}, start));
    return ++added;
  }
  int send(Deadline now) {
    int sent = 0;
    all.send_due(now, [&](std::uint64_t, const Orphan&, std::uint32_t n) {
      number = n;
      return ++sent > 0;
    });
    return sent;
  }
};

TEST(Orphans, NothingIsToBeDoneForNobody) {
  Bench bench;
  EXPECT_TRUE(bench.all.empty());
  EXPECT_EQ(bench.all.next(), Deadline::max());
  EXPECT_EQ(bench.all.next_over(), Deadline::max());
  EXPECT_EQ(bench.send(Deadline::max()), 0);
  EXPECT_TRUE(bench.all.over(Deadline::max()).empty());
}

TEST(Orphans, TheFirstTryIsMadeWhenItIsToBeAndNotBefore) {
  Bench bench;
  bench.all.add({"k", "t", op_timeout, {}, start + 1h}, start + 30ms);
  EXPECT_EQ(bench.all.next(), start + 30ms);
  EXPECT_EQ(bench.send(start + 30ms - 1ns), 0);
  EXPECT_EQ(bench.send(start + 30ms), 1);
  EXPECT_EQ(bench.send(start + 30ms), 0) << "it is on its way";
}

TEST(Orphans, AfterAFailurePausesGrowFrom50MsTo5S) {
  Bench bench;
  const auto ticket = bench.add();
  Deadline now = start;
  for (const Millis pause : {50ms, 100ms, 200ms, 400ms, 800ms, 1'600ms, 3'200ms, 5'000ms, 5'000ms}) {
    ASSERT_EQ(bench.send(now), 1);
    bench.all.saw_failed(ticket, now + 1ms);
    ASSERT_EQ(bench.all.next(), now + 1ms + pause);
    now = bench.all.next();
  }
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(bench.send(now), 1);
    bench.all.saw_failed(ticket, now);
    ASSERT_EQ(bench.all.next(), now + 5s);
    now = bench.all.next();
  }
}

TEST(Orphans, WithoutAnAnswerPausesGrowTooBehindTheOpTimeout) {
  Bench bench;
  bench.add();
  Deadline now = start;
  for (const Millis pause : {50ms, 100ms, 200ms, 400ms, 800ms, 1'600ms, 3'200ms, 5'000ms, 5'000ms}) {
    ASSERT_EQ(bench.send(now), 1);
    ASSERT_EQ(bench.all.next(), now + op_timeout + pause);
    now = bench.all.next();
  }
}

TEST(Orphans, WhatNobodyTakesStaysDue) {
  Bench bench;
  bench.add();
  bench.all.send_due(start, [](std::uint64_t, const Orphan&, std::uint32_t) { return false; });
  EXPECT_EQ(bench.all.next(), start);
  EXPECT_EQ(bench.send(start), 1);
  EXPECT_EQ(bench.number, 1U) << "what was not taken is no try";
}

TEST(Orphans, ReleasedIsTheLastWordWhereNobodyKnowsWhenItIsSpent) {
  Bench bench;
  const auto ticket = bench.add(Deadline::max());
  bench.send(start);
  const auto gone = bench.all.saw_gone(ticket, bench.number, true, start + 1ms);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->token, "t");
  EXPECT_TRUE(bench.all.empty());
  EXPECT_EQ(bench.all.next(), Deadline::max());
  EXPECT_FALSE(bench.all.saw_gone(ticket, bench.number, true, start + 1ms)) << "told once";
}

TEST(Orphans, ReleasedIsNotTheLastWordBeforeItIsSpentSinceAnotherQuestionMayBringItBack) {
  Bench bench;
  const Deadline spent_by = start + 200ms;
  const auto ticket = bench.add(spent_by);
  bench.send(start);
  EXPECT_FALSE(bench.all.saw_gone(ticket, bench.number, true, start + 1ms));
  EXPECT_EQ(bench.all.next(), spent_by);
  bench.send(spent_by);
  EXPECT_TRUE(bench.all.saw_gone(ticket, bench.number, true, spent_by + 1ms));
}

TEST(Orphans, NotThereIsTheLastWordOnlyOfATrySentWhenItWasSpent) {
  Bench bench;
  const Deadline spent_by = start + 200ms;
  const auto ticket = bench.add(spent_by);
  bench.send(start);
  EXPECT_FALSE(bench.all.saw_gone(ticket, bench.number, false, start + 1ms));
  EXPECT_EQ(bench.all.next(), spent_by) << "what it is to undo may still arrive";
  bench.send(spent_by);
  EXPECT_TRUE(bench.all.saw_gone(ticket, bench.number, false, spent_by + 1ms));
}

TEST(Orphans, AnAnswerThatCameLateToATryBeforeItWasSpentIsNotTheLastWord) {
  Bench bench;
  const Deadline spent_by = start + 120ms;
  const auto ticket = bench.add(spent_by);
  bench.send(start);
  const auto early = bench.number;
  ASSERT_EQ(bench.send(start + 150ms), 1);  // unanswered, so again
  EXPECT_FALSE(bench.all.saw_gone(ticket, early, false, start + 160ms));
  EXPECT_FALSE(bench.all.empty());
  EXPECT_TRUE(bench.all.saw_gone(ticket, bench.number, false, start + 170ms));
}

TEST(Orphans, AnAnswerToAnyTrySentWhenItWasSpentIsTheLastWord) {
  Bench bench;
  const auto ticket = bench.add(start + 10ms);
  bench.send(start);
  bench.all.saw_failed(ticket, start);
  ASSERT_EQ(bench.send(start + 50ms), 1);
  const auto spent = bench.number;
  ASSERT_EQ(bench.send(start + 250ms), 1);  // a slow network: again before the answer comes
  EXPECT_TRUE(bench.all.saw_gone(ticket, spent, false, start + 260ms));
}

TEST(Orphans, WhereNobodyKnowsWhenItIsSpentOnlyReleasedEndsIt) {
  Bench bench;
  const auto ticket = bench.add(Deadline::max());
  Deadline now = start;
  for (const Millis pause : {50ms, 100ms, 200ms}) {
    ASSERT_EQ(bench.send(now), 1);
    ASSERT_FALSE(bench.all.saw_gone(ticket, bench.number, false, now));
    ASSERT_EQ(bench.all.next(), now + pause);
    now = bench.all.next();
  }
}

TEST(Orphans, ItIsOverWhenItsTtlHasPassed) {
  Bench bench;
  bench.add(Deadline::min(), start + 3s, "first");
  bench.add(Deadline::min(), start + 1s, "second");
  bench.add(Deadline::min(), start + 2s, "third");
  EXPECT_EQ(bench.all.next_over(), start + 1s);
  EXPECT_TRUE(bench.all.over(start + 1s - 1ns).empty());
  const auto over = bench.all.over(start + 2s);
  ASSERT_EQ(over.size(), 2U);
  EXPECT_EQ(over[0].token, "third");
  EXPECT_EQ(over[1].token, "second");
  EXPECT_EQ(bench.all.size(), 1U);
  EXPECT_EQ(bench.all.next_over(), start + 3s);
}

TEST(Orphans, ThereAreNeverTooManyTheOldestIsHandedBack) {
  Bench bench;
  for (std::size_t i = 0; i < Orphans::most; ++i) bench.add(Deadline::min(), start + 1h, std::to_string(i));
  for (std::size_t i = 0; i < 3; ++i) {
    const auto dropped = bench.all.add({"k", "new", op_timeout, {}, start + 1h}, start);
    ASSERT_TRUE(dropped);
    EXPECT_EQ(dropped->token, std::to_string(i));
    EXPECT_EQ(bench.all.size(), Orphans::most);
  }
}

TEST(Orphans, ForgottenIsNotTriedAnyMoreAndTheOthersAre) {
  Bench bench;
  bench.add(Deadline::min(), start + 1h, "first");
  const auto second = bench.add(Deadline::min(), start + 1h, "second");
  bench.all.forget("first");
  bench.all.forget("first");
  bench.all.forget("nobody");
  EXPECT_EQ(bench.send(start), 1);
  EXPECT_TRUE(bench.all.saw_gone(second, bench.number, true, start));
  EXPECT_TRUE(bench.all.empty());
}

TEST(Orphans, WhatWasNotCarriedOutMayGoAgainAtOnce) {
  Bench bench;
  const auto ticket = bench.add();
  bench.send(start);
  bench.all.saw_unsent(ticket, start + 1ms);
  EXPECT_EQ(bench.send(start + 1ms), 1);
}

TEST(Orphans, HurryMakesEveryOneDueAndTheFirstAnswerTheLastWord) {
  Bench bench;
  const auto ticket = bench.add(start + 1min);
  bench.add();
  bench.send(start);
  bench.all.saw_gone(ticket, bench.number, false, start);
  ASSERT_EQ(bench.send(start + 10ms), 0);
  bench.all.hurry(start + 10ms);
  EXPECT_EQ(bench.all.next(), start + 10ms);
  EXPECT_EQ(bench.send(start + 10ms), 2);
  EXPECT_TRUE(bench.all.saw_gone(ticket, bench.number, false, start + 11ms)) << "there is no time to wait for more";
}

TEST(Orphans, AnswersForNobodyAreIgnored) {
  Bench bench;
  bench.add();
  EXPECT_FALSE(bench.all.saw_gone(99, 1, true, start));
  bench.all.saw_failed(99, start);
  EXPECT_EQ(bench.all.next(), start);
  EXPECT_EQ(bench.all.size(), 1U);
}

}  // namespace
}  // namespace redlease
