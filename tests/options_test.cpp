#include "redlease/options.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace redlease {
namespace {

using namespace std::chrono_literals;

constexpr auto sound = std::nullopt;
constexpr auto ttl_flaw = "ttl must be between 10 ms and 24 h";
constexpr auto wait_flaw = "wait must not be negative (0 tries once, forever has no limit)";
constexpr auto op_timeout_flaw = "op_timeout must be between 1 ms and a third of ttl";
constexpr auto max_hold_flaw = "max_hold must be positive (leave it out for no limit)";
constexpr auto stop_before_flaw = "stop_before must be between 0 and half of ttl";
constexpr auto floor_flaw = "fence_floor must be below 2^52";
constexpr auto label_flaw = "label must have at most 256 bytes";
constexpr auto name_flaw = "name must be printable ASCII without spaces, at most 256 bytes";
constexpr auto drift_flaw = "drift must be at least 0 and below 0.5";
constexpr auto pair_flaw = "tls.cert_file and tls.key_file must be given together or not at all";

TEST(LeaseOptions, DefaultsAreSound) { EXPECT_EQ(flaw(LeaseOptions{}), sound); }

TEST(LeaseOptions, TtlIs10MsTo24Hours) {
  EXPECT_EQ(flaw(LeaseOptions{.ttl = 10ms}), sound);
  EXPECT_EQ(flaw(LeaseOptions{.ttl = 24h}), sound);
  for (const Millis ttl : {9ms, 0ms, -1ms, Millis(24h) + 1ms, Millis::max(), Millis::min()}) {
    EXPECT_EQ(flaw(LeaseOptions{.ttl = ttl}), ttl_flaw) << ttl.count();
  }
}

TEST(LeaseOptions, WaitIsNotNegativeAndMayBeForever) {
  EXPECT_EQ(flaw(LeaseOptions{.wait = 0ms}), sound);
  EXPECT_EQ(flaw(LeaseOptions{.wait = forever}), sound);
  EXPECT_EQ(flaw(LeaseOptions{.wait = -1ms}), wait_flaw);
  EXPECT_EQ(flaw(LeaseOptions{.wait = Millis::min()}), wait_flaw);
}

TEST(LeaseOptions, OpTimeoutIsAtMostAThirdOfTheTtl) {
  EXPECT_EQ(flaw(LeaseOptions{.ttl = 1s, .op_timeout = 1ms}), sound);
  EXPECT_EQ(flaw(LeaseOptions{.ttl = 1s, .op_timeout = 333ms}), sound);
  EXPECT_EQ(flaw(LeaseOptions{.ttl = 24h, .op_timeout = 8h}), sound);
  for (const Millis limit : {334ms, 0ms, -1ms, Millis::max(), Millis::min()}) {
    EXPECT_EQ(flaw(LeaseOptions{.ttl = 1s, .op_timeout = limit}), op_timeout_flaw) << limit.count();
  }
}

TEST(LeaseOptions, MaxHoldIsPositive) {
  EXPECT_EQ(flaw(LeaseOptions{.max_hold = 1ms}), sound);
  EXPECT_EQ(flaw(LeaseOptions{.max_hold = forever}), sound);
  EXPECT_EQ(flaw(LeaseOptions{.max_hold = 0ms}), max_hold_flaw);
  EXPECT_EQ(flaw(LeaseOptions{.max_hold = Millis::min()}), max_hold_flaw);
}

TEST(LeaseOptions, StopBeforeIsAtMostHalfOfTheTtl) {
  EXPECT_EQ(flaw(LeaseOptions{.ttl = 1s, .stop_before = 500ms}), sound);
  for (const Millis early : {501ms, -1ms, Millis::max(), Millis::min()}) {
    EXPECT_EQ(flaw(LeaseOptions{.ttl = 1s, .stop_before = early}), stop_before_flaw) << early.count();
  }
}

TEST(LeaseOptions, FenceFloorIsBelow2To52) {
  constexpr std::uint64_t bound = std::uint64_t{1} << 52;
  EXPECT_EQ(flaw(LeaseOptions{.fence_floor = FencingToken{0}}), sound);
  EXPECT_EQ(flaw(LeaseOptions{.fence_floor = FencingToken{bound - 1}}), sound);
  EXPECT_EQ(flaw(LeaseOptions{.fence_floor = FencingToken{bound}}), floor_flaw);
  EXPECT_EQ(flaw(LeaseOptions{.fence_floor = FencingToken{std::numeric_limits<std::uint64_t>::max()}}), floor_flaw);
}

TEST(LeaseOptions, LabelHasAtMost256Bytes) {
  EXPECT_EQ(flaw(LeaseOptions{.label = std::string(256, '\0')}), sound);
  EXPECT_EQ(flaw(LeaseOptions{.label = std::string(257, 'x')}), label_flaw);
}

TEST(LeaseOptions, OfSeveralFlawsTheFirstInOrderIsTold) {
  LeaseOptions all{.ttl = 1ms, .wait = -1ms, .op_timeout = 0ms, .max_hold = 0ms, .stop_before = -1ms};
  EXPECT_EQ(flaw(all), ttl_flaw);
  all.ttl = 1s;
  EXPECT_EQ(flaw(all), wait_flaw);
  all.wait = 0ms;
  EXPECT_EQ(flaw(all), op_timeout_flaw);
  all.op_timeout.reset();
  EXPECT_EQ(flaw(all), max_hold_flaw);
  all.max_hold.reset();
  EXPECT_EQ(flaw(all), stop_before_flaw);
}

TEST(OpTimeout, IsAThirdOfTheTtlUpToOneSecondUnlessGiven) {
  EXPECT_EQ(op_timeout_of({.ttl = 10ms}), 3ms);
  EXPECT_EQ(op_timeout_of({.ttl = 2999ms}), 999ms);
  EXPECT_EQ(op_timeout_of({.ttl = 3s}), 1s);
  EXPECT_EQ(op_timeout_of({.ttl = 24h}), 1s);
  EXPECT_EQ(op_timeout_of({.ttl = 24h, .op_timeout = 8h}), Millis(8h));
  EXPECT_EQ(op_timeout_of({.ttl = Millis::max()}), 1s);
  EXPECT_EQ(op_timeout_of({.ttl = Millis::min()}), 1ms) << "never 0, even for a ttl that flaw() refuses";
}

TEST(ClientOptions, DefaultsAreSound) { EXPECT_EQ(flaw(ClientOptions{}), sound); }

TEST(ClientOptions, OneConnectionIsTheLeast) {
  EXPECT_EQ(flaw(ClientOptions{.max_connections = 1}), sound);
  EXPECT_EQ(flaw(ClientOptions{.max_connections = 0}), "max_connections must be between 1 and 65,535");
  EXPECT_EQ(flaw(ClientOptions{.max_connections = 65'535}), std::nullopt);
  EXPECT_NE(flaw(ClientOptions{.max_connections = std::size_t(-1)}), std::nullopt);
}

TEST(ClientOptions, NameIsWhatClientSetnameTakes) {
  for (const auto* name : {"", "!", "~", "billing-7/eu"}) EXPECT_EQ(flaw(ClientOptions{.name = name}), sound) << name;
  EXPECT_EQ(flaw(ClientOptions{.name = std::string(256, 'n')}), sound);
  EXPECT_EQ(flaw(ClientOptions{.name = std::string(257, 'n')}), name_flaw);
  for (const auto* name : {"two words", "line\n", "\x7f", "caf\xc3\xa9"}) {
    EXPECT_EQ(flaw(ClientOptions{.name = name}), name_flaw) << name;
  }
  EXPECT_EQ(flaw(ClientOptions{.name = std::string(1, '\0')}), name_flaw);
}

TEST(ClientOptions, PrefixLeavesRoomForAName) {
  EXPECT_EQ(flaw(ClientOptions{.key_prefix = std::string(511, 'p')}), sound);
  EXPECT_EQ(flaw(ClientOptions{.key_prefix = std::string(512, 'p')}), "key_prefix must have at most 511 bytes");
}

TEST(ClientOptions, DriftIsAShareBelowAHalf) {
  EXPECT_EQ(flaw(ClientOptions{.drift = 0}), sound);
  EXPECT_EQ(flaw(ClientOptions{.drift = 0.499}), sound);
  using Limit = std::numeric_limits<double>;
  for (const double drift : {0.5, -0.001, Limit::quiet_NaN(), Limit::infinity(), -Limit::infinity()}) {
    EXPECT_EQ(flaw(ClientOptions{.drift = drift}), drift_flaw) << drift;
  }
}

TEST(ClientOptions, QuarantineIsNotNegative) {
  EXPECT_EQ(flaw(ClientOptions{.quarantine = 0ms}), sound);
  EXPECT_EQ(flaw(ClientOptions{.quarantine = forever}), sound);
  EXPECT_EQ(flaw(ClientOptions{.quarantine = -1ms}), "quarantine must not be negative (0 switches it off)");
}

TEST(ClientOptions, AcknowledgementsAreForLater) {
  EXPECT_EQ(flaw(ClientOptions{.acks = 1}),
            "acks must be 0 for now: replica acknowledgement comes with Sentinel and Cluster support");
}

TEST(ClientOptions, ClientCertificateAndKeyComeTogether) {
  EXPECT_EQ(flaw(ClientOptions{.tls = {.cert_file = "c.pem", .key_file = "k.pem"}}), sound);
  EXPECT_EQ(flaw(ClientOptions{.tls = {.cert_file = "c.pem"}}), pair_flaw);
  EXPECT_EQ(flaw(ClientOptions{.tls = {.key_file = "k.pem"}}), pair_flaw);
}

}  // namespace
}  // namespace redlease
