// What a waiter makes of a grant that it hears; and times and answers that no sane server gives.
#include <gtest/gtest.h>

#include <limits>

#include "wait_terms.hpp"

namespace redlease {
namespace {

using namespace testing_support;
using std::chrono::microseconds;

constexpr Deadline start = wait_start;

std::optional<Deadline> granted(WaitPlan& plan, LeaseClock::duration heard_after, LeaseClock::duration made_after) {
  return plan.saw_grant(start + heard_after, server_start + made_after / microseconds(1));
}

TEST(WaitPlan, AGrantCountsFromTheQuestionPlusTheServersTimeSinceItsAnswerLessTheDrift) {
  WaitPlan plan = in_line(patient());
  EXPECT_EQ(granted(plan, 1'001ms, 1s), start + 990ms);
  WaitPlan::Terms terms = patient();
  terms.drift = 0;
  WaitPlan exact = in_line(terms);
  EXPECT_EQ(granted(exact, 1'001ms, 1s), start + 1s);
}

TEST(WaitPlan, AGrantCountsFromBeforeTheLatestQuestionNotFromItsAnswer) {
  WaitPlan plan = in_line(patient());
  plan.saw_queued(start + 1'500ms, place_at(1s));  // sent at 1 s, answered at once, heard half a second later
  EXPECT_EQ(granted(plan, 2s, 1s), start + 1s);
  EXPECT_EQ(granted(plan, 2s, 1'100ms), start + 1'099ms);
}

TEST(WaitPlan, AGrantCountsFromNoLaterThanItsReceipt) {
  WaitPlan::Terms terms = patient();
  terms.drift = 0;
  WaitPlan plan = in_line(terms);
  const auto from = granted(plan, 1s, 1s);
  ASSERT_TRUE(from);
  EXPECT_LE(*from, start + 1s);
}

TEST(WaitPlan, AGrantFromBeforeTheLatestPlaceIsOfAFormerTurnAndAReasonToAsk) {
  WaitPlan plan = in_line(patient());
  plan.saw_queued(start + 1s, place_at(1s));
  EXPECT_EQ(wants(plan, start + 1s), "to listen");
  EXPECT_EQ(granted(plan, 1'001ms, 1s - 1us), std::nullopt);
  EXPECT_EQ(wants(plan, start + 1'001ms), "to ask for a place");
}

TEST(WaitPlan, AGrantAfterTheServersClockJumpedForwardIsNotBelievedButAskedFor) {
  WaitPlan plan = in_line(patient());
  EXPECT_TRUE(granted(plan, 1s, 1'009ms)) << "so far the clocks may differ";
  WaitPlan other = in_line(patient());
  EXPECT_EQ(granted(other, 1s, 1'011ms), std::nullopt);
  EXPECT_EQ(wants(other, start + 1s), "to ask for a place");
}

TEST(WaitPlan, AGrantOfWhichLessThanTwoThirdsAreLeftIsAskedForAtOnce) {
  // It counts from 990 ms; of 12 s, 8 are left 4 s less the margin later.
  WaitPlan plan = in_line(patient());
  EXPECT_EQ(granted(plan, 990ms + 4s - 122ms, 1s), start + 990ms);
  WaitPlan late = in_line(patient());
  EXPECT_EQ(granted(late, 990ms + 4s - 122ms + 1ns, 1s), std::nullopt);
  EXPECT_EQ(wants(late, start + 5s), "to ask for a place");
}

TEST(WaitPlan, AGrantIsNotBelievedUnlessTheServerHasToldAPlace) {
  WaitPlan plan(patient());
  EXPECT_EQ(granted(plan, 1s, 1s), std::nullopt);
  plan.saw_busy(start, 1h);
  EXPECT_EQ(granted(plan, 1s, 1s), std::nullopt);
  plan.saw_inbox(start);
  EXPECT_EQ(granted(plan, 1s, 1s), std::nullopt);
  EXPECT_EQ(wants(plan, start + 1s), "to ask for a place");
}

TEST(WaitPlan, AfterTroubleAGrantIsNotBelievedButAskedFor) {
  WaitPlan plan = in_line(patient());
  plan.saw_trouble(start + 500ms);
  EXPECT_EQ(granted(plan, 501ms, 501ms), std::nullopt);
  EXPECT_EQ(wants(plan, start + 501ms), "to ask for a place");
  plan.saw_queued(start + 502ms, place_at(502ms));
  EXPECT_TRUE(granted(plan, 600ms, 590ms)) << "the server has told again";
}

TEST(WaitPlan, AfterALostInboxAGrantIsNotBelievedButAskedFor) {
  const auto lose = [](WaitPlan& plan) { plan.saw_no_inbox(start); };
  const auto not_had = [&](WaitPlan& plan) {
    lose(plan);
    plan.saw_queued(start, place_at({}));
    plan.saw_no_inbox(start);
  };
  const auto had_again = [&](WaitPlan& plan) {
    lose(plan);
    plan.saw_queued(start, place_at({}));  // perhaps of another server than the new inbox
    plan.saw_inbox(start);
  };
  const auto refused = [](WaitPlan& plan) { plan.saw_inbox_refused(start); };
  const auto unheard = [](WaitPlan& plan) {
    WaitPlan::Place place = place_at({});
    place.heard = false;
    plan.saw_queued(start, place);
  };
  const auto check = [](auto how) {
    WaitPlan plan = in_line(patient());
    how(plan);
    EXPECT_EQ(granted(plan, 1s, 990ms), std::nullopt);
    EXPECT_EQ(plan.next(start + 1s).step == WaitPlan::Step::listen, false);
  };
  check(lose);
  check(not_had);
  check(had_again);
  check(refused);
  check(unheard);
}

TEST(WaitPlan, ExtremeTimesSaturate) {
  for (const bool queue : {false, true}) {
    WaitPlan::Terms terms = patient(std::numeric_limits<std::uint64_t>::max());
    terms.queue = queue;
    terms.start = Deadline::max();
    WaitPlan late(terms);
    late.saw_busy(Deadline::max(), Millis::max());
    EXPECT_EQ(wants(late, Deadline::max()), "to give up");
    terms.start = Deadline::min();
    WaitPlan early(terms);
    early.saw_busy(Deadline::min(), Millis::max());
    early.saw_no_inbox(Deadline::min());
    early.saw_queued(Deadline::min(), place_at({}));
    EXPECT_EQ(wants(early, Deadline::min()), "to listen");
    early.saw_no_inbox(Deadline::max());
    EXPECT_EQ(wants(early, Deadline::max()), "to give up");
    terms.give_up = Deadline::min();
    WaitPlan never(terms);
    never.saw_trouble(Deadline::min());
    EXPECT_EQ(wants(never, Deadline::min()), "to give up");
  }
}

TEST(WaitPlan, ExtremePlacesAreAskedForAgainWithinAHeartbeatAndNeverAtOnce) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  for (const Millis ttl : {Millis(10ms), Millis(12s), Millis(24h)}) {
    for (const std::optional<Millis> remaining :
         {std::optional<Millis>(forever), std::optional(Millis::max() - 1ms), std::optional(Millis::min()),
          std::optional(-1ms), std::optional<Millis>()}) {
      for (const std::size_t ahead : {std::size_t{0}, std::size_t{10'000}, most}) {
        for (const bool foreign : {false, true}) {
          WaitPlan::Terms terms = patient();
          terms.ttl = ttl;
          WaitPlan::Place place = place_at({}, remaining, ahead);
          place.foreign = foreign;
          const WaitPlan plan = in_line(terms, place);
          EXPECT_LE(pause_of(plan, start), plan.heartbeat());
          const bool only_shows_life = remaining > 1h && !foreign;
          EXPECT_GE(pause_of(plan, start), only_shows_life ? plan.heartbeat() * 9 / 10 : Millis(2));
        }
      }
    }
  }
}

TEST(WaitPlan, ExtremeGrantsAreNotBelievedAndNeverCountFromLaterThanTheirReceipt) {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t told : {least, std::int64_t{0}, most}) {
    for (const std::int64_t made : {least, std::int64_t{0}, most}) {
      for (const Deadline sent : {Deadline::min(), Deadline{}, Deadline::max()}) {
        for (const Deadline heard : {Deadline::min(), Deadline{}, Deadline::max()}) {
          WaitPlan::Place place = place_at({});
          place.sent = sent;
          place.server_time = told;
          WaitPlan plan = in_line(patient(), place);
          const auto from = plan.saw_grant(heard, made);
          EXPECT_LE(from.value_or(heard), heard);
          // Only what was made when the question left; where times saturate, anything.
          const bool saturates = sent != Deadline{} || heard == Deadline::max();
          EXPECT_TRUE(saturates || from.has_value() == (told == made && sent == heard)) << told << ' ' << made;
        }
      }
    }
  }
}

TEST(WaitPlan, AShortTtlIsBelievedTooIfItIsFresh) {
  WaitPlan::Terms terms = patient();
  terms.ttl = 10ms;
  terms.margin = 2'100us;
  WaitPlan plan = in_line(terms);
  EXPECT_EQ(granted(plan, 10ms, 10ms), start + 9'900us);
  WaitPlan stale = in_line(terms);
  EXPECT_EQ(granted(stale, 12ms, 10ms), std::nullopt);
}

}  // namespace
}  // namespace redlease
