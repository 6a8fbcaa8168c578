#pragma once
// Part of store_suite.hpp: who gets a lease, and with which fence.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "store_suite_fixture.hpp"

namespace redlease {

TYPED_TEST_P(LeaseStoreSuite, AFreeKeyIsGrantedAndCountedFromBeforeTheCall) {
  const Deadline before = this->world.now();
  const auto acquisition = this->acquire("a");
  const Deadline after = this->world.now();
  EXPECT_GT(this->granted(acquisition), FencingToken{0});
  ASSERT_TRUE(std::holds_alternative<Granted>(acquisition));
  EXPECT_GE(std::get<Granted>(acquisition).counted_from, before);
  EXPECT_LE(std::get<Granted>(acquisition).counted_from, after);
}

TYPED_TEST_P(LeaseStoreSuite, AHeldKeyIsBusyForEveryOtherToken) {
  this->grant("a");
  for (const auto* other : {"b", "A", "aa", ""}) {
    const auto busy = this->busy(other);
    ASSERT_TRUE(busy) << other;
    ASSERT_TRUE(busy->remaining);
    EXPECT_GT(*busy->remaining, this->hour - this->minute);
    EXPECT_LE(*busy->remaining, this->hour);
    EXPECT_EQ(busy->holder, this->holder);
  }
}

TYPED_TEST_P(LeaseStoreSuite, TheSameTokenIsGrantedTheSameFenceAgain) {
  const FencingToken first = this->grant("a");
  EXPECT_EQ(this->grant("a"), first);
  EXPECT_EQ(this->grant("a", this->minute), first);
}

TYPED_TEST_P(LeaseStoreSuite, AcquiringAgainLengthens) {
  this->grant("a", this->minute);
  this->grant("a", this->hour);
  EXPECT_GT(this->remaining(), this->hour - this->minute);
}

TYPED_TEST_P(LeaseStoreSuite, AcquiringAgainNeverShortens) {
  this->grant("a", this->hour);
  this->grant("a", this->minute);
  EXPECT_GT(this->remaining(), this->hour - this->minute);
}

TYPED_TEST_P(LeaseStoreSuite, AnExpiredTokenThatComesBackIsANewGrant) {
  const FencingToken first = this->grant("a", this->brief);
  this->world.advance(this->past_brief);
  EXPECT_GT(this->grant("a"), first);
}

TYPED_TEST_P(LeaseStoreSuite, OfManyAtOnceOneIsGranted) {
  std::atomic<int> grants{0};
  std::atomic<int> refusals{0};
  {
    std::vector<std::jthread> crew;
    for (int i = 0; i < 8; ++i) {
      crew.emplace_back([&, token = "t" + std::to_string(i)] {
        const auto acquisition = this->acquire(token);
        if (std::holds_alternative<Granted>(acquisition)) ++grants;
        if (std::holds_alternative<Busy>(acquisition)) ++refusals;
      });
    }
  }
  EXPECT_EQ(grants, 1);
  EXPECT_EQ(refusals, 7);
}

TYPED_TEST_P(LeaseStoreSuite, FencesGrowThroughReleaseExpiryAndBreak) {
  FencingToken last{0};
  for (int round = 0; round < 3; ++round) {
    const FencingToken after_break = this->grant("a");
    EXPECT_GT(after_break, last);
    this->expect_released("a");
    const FencingToken after_release = this->grant("b", this->brief);
    EXPECT_GT(after_release, after_break);
    this->world.advance(this->past_brief);
    last = this->grant("c");
    EXPECT_GT(last, after_release);
    EXPECT_TRUE(this->store.break_lease(this->key, {}).value());
  }
}

TYPED_TEST_P(LeaseStoreSuite, TheFenceIsAboveTheFloorAndStaysThere) {
  const FencingToken floor{(std::uint64_t{1} << 52) - 1};
  auto request = this->request("a");
  request.floor = floor;
  const FencingToken first = this->granted(this->store.acquire(request, {}));
  EXPECT_GT(first, floor);
  this->expect_released("a");
  EXPECT_GT(this->grant("b"), first) << "without a floor of its own";
}

TYPED_TEST_P(LeaseStoreSuite, ALowFloorChangesNothing) {
  const FencingToken first = this->grant("a");
  this->expect_released("a");
  auto request = this->request("b");
  request.floor = FencingToken{1};
  EXPECT_GT(this->granted(this->store.acquire(request, {})), first);
}

TYPED_TEST_P(LeaseStoreSuite, LabelsOfAnyBytesAreShown) {
  const std::string binary("\0\n\xff %s:1 \r\n", 11);
  for (const std::string& label : {std::string("plain"), std::string(" with  spaces "), std::string("two\nlines\r\n"),
                                   binary, std::string(256, 'x'), std::string(256, '\0')}) {
    auto request = this->request("a");
    request.label = label;
    this->granted(this->store.acquire(request, {}));
    const LeaseInfo info = this->inspect();
    EXPECT_EQ(info.holder, this->holder);
    EXPECT_EQ(info.label, label);
    const auto busy = this->busy("b");
    ASSERT_TRUE(busy);
    EXPECT_EQ(busy->holder, std::string(this->holder) + " " + label);
    this->expect_released("a");
  }
}

TYPED_TEST_P(LeaseStoreSuite, NamesOfAnyBytesAreDistinct) {
  const std::string k = this->key;
  const std::vector<std::string> names{k + " a b",
                                       k + "\n",
                                       k + std::string(1, '\0'),
                                       k + "\xff\xfe",
                                       "{" + k + "}",
                                       "{" + k + "}:a",
                                       "{}" + k,
                                       k + "{",
                                       k + "}x{",
                                       k + ":{" + k,
                                       k + ":{" + k + "}",
                                       k + "%00"};
  std::vector<FencingToken> fences;
  for (const auto& name : names) {
    this->key = name;
    fences.push_back(this->grant(name));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    this->key = names[i];
    EXPECT_EQ(this->grant(names[i]), fences[i]) << names[i];
    EXPECT_EQ(this->inspect().fence, fences[i]) << names[i];
    this->expect_released(names[i]);
    EXPECT_FALSE(this->inspect().held) << names[i];
  }
}

TYPED_TEST_P(LeaseStoreSuite, TheBoundsOfTheTtlWork) {
  this->grant("a", Millis{10});
  this->world.advance(Millis{50});
  EXPECT_FALSE(this->inspect().held);
  const Millis day = 24 * this->hour;
  this->grant("b", day);
  EXPECT_LE(this->remaining(), day);
  EXPECT_GT(this->remaining(), day - this->minute);
}

TYPED_TEST_P(LeaseStoreSuite, NothingIsDoneOnceStopIsAskedOrTheDeadlinePast) {
  std::stop_source source;
  source.request_stop();
  const Limits stopped{.deadline = Deadline::max(), .stop = source.get_token()};
  const Limits late{.deadline = deadline_in(Millis{-1}), .stop = {}};
  this->grant("a", this->minute);
  for (const auto& [limits, code] : {std::pair(stopped, Errc::cancelled), std::pair(late, Errc::timed_out)}) {
    EXPECT_EQ(this->refused(this->store.acquire(this->request("b"), limits)), code);
    for (const auto& renewal : {this->store.renew(this->key, "a", this->hour, limits),
                                this->store.adopt(this->key, "a", this->hour, limits)}) {
      EXPECT_EQ(to_string(renewal.outcome), "unavailable");
      EXPECT_EQ(renewal.error.code, code);
    }
    const auto released = this->store.release(this->key, "a", limits);
    EXPECT_EQ(to_string(released.outcome), "unavailable");
    EXPECT_EQ(released.error.code, code);
    EXPECT_EQ(this->refused(this->store.inspect(this->key, limits)), code);
    EXPECT_EQ(this->refused(this->store.break_lease(this->key, limits)), code);
    EXPECT_EQ(this->refused(this->store.fenced_set(this->world.key(), "v", FencingToken{1}, limits)), code);
    EXPECT_EQ(this->refused(this->store.ping(limits)), code);
  }
  EXPECT_TRUE(this->busy("b"));
  EXPECT_LE(this->remaining(), this->minute);
}

}  // namespace redlease
