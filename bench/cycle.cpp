// S1: the uncontended cycle and a try on a held key, over a unix socket and over TCP, with their floors.
//   bench_cycle <file for the figures> <socket> <port> <the server's core> <our core>
#include <exception>
#include <functional>
#include <iostream>
#include <redlease/redlease.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "floor.hpp"
#include "measure.hpp"
#include "recording.hpp"
#include "rows.hpp"

namespace {

using redlease::Client;
using redlease::LeaseKey;
using namespace std::chrono_literals;

constexpr int recorded = 256;
constexpr int rounds = 31;
constexpr int cycles_a_turn = 400;

struct Setting {
  std::string url, name;
  bool one_core;
};

bench::Variant turn_of(std::function<void()> cycle) {
  return [cycle = std::move(cycle)] { return bench::time_cycles(cycles_a_turn, cycle); };
}

std::vector<bench::Row> cycle_rows(const Setting& at) {
  using bench::Bound;
  using bench::Cycles;
  Client client(at.url);
  const LeaseKey key("bench:cycle");
  const auto ours = [&] {
    auto lease = client.try_acquire(key).lease();
    if (!lease || lease->release() != redlease::ReleaseOutcome::released) {
      throw std::runtime_error("a cycle on a free key did not go through");
    }
  };
  auto recording = bench::Recording::of(at.url, recorded, ours);
  bench::Raw raw(at.url);
  bench::PlainLock plain(raw, "bench:plain");
  const bench::Rounds r(rounds,
                        {turn_of([&] { plain.cycle(); }), turn_of(ours), turn_of([&] { recording.replay(raw); })});
  const auto row = [&](const char* what, std::size_t floor, const char* against, double bench::Turn::*figure,
                       double goal) {
    return bench::Row{"S1: acquire and release of a free key",
                      std::string(what) + ", " + at.name,
                      against,
                      "µs",
                      r.typical(floor, figure),
                      r.typical(1, figure),
                      r.ratio(1, floor, figure),
                      Bound::at_most,
                      goal};
  };
  return {row("p50", 2, "replay", Cycles::p50, 1.10), row("client CPU", 2, "replay", Cycles::cpu, 1.15),
          row("p50", 0, "plain lock", Cycles::p50, at.one_core ? 1.5 : 1.08)};
}

std::vector<bench::Row> try_rows(const Setting& at) {
  using bench::Cycles;
  const LeaseKey key("bench:held");
  Client holder(at.url);
  const auto lease = holder.try_acquire(key, {.ttl = 10min}).lease();
  if (!lease) throw std::runtime_error("the key to be held could not be acquired");
  Client client(at.url);
  const auto ours = [&] {
    if (client.try_acquire(key).outcome() != redlease::AcquireOutcome::busy) {
      throw std::runtime_error("a try on a held key was not told busy");
    }
  };
  auto recording = bench::Recording::of(at.url, recorded, ours);
  bench::Raw raw(at.url);
  bench::Prepared ping({"PING"});
  const bench::Rounds r(rounds,
                        {turn_of([&] { raw.call(ping); }), turn_of(ours), turn_of([&] { recording.replay(raw); })});
  const auto row = [&](std::size_t floor, const char* against, double goal) {
    return bench::Row{"S1: try on a held key",
                      "p50, " + at.name,
                      against,
                      "µs",
                      r.typical(floor, Cycles::p50),
                      r.typical(1, Cycles::p50),
                      r.ratio(1, floor, Cycles::p50),
                      bench::Bound::at_most,
                      goal};
  };
  return {row(2, "replay", 1.10), row(0, "one round trip", 1.5)};
}

void run(char** arguments) {
  const bool one_core = std::string_view(arguments[4]) == arguments[5];
  bench::pin_to(std::stoi(arguments[5]));
  const std::string cores = one_core ? ", one core" : ", two cores";
  const Setting settings[] = {{std::string("unix://") + arguments[2], "unix" + cores, one_core},
                              {std::string("redis://127.0.0.1:") + arguments[3], "TCP" + cores, one_core}};
  std::vector<bench::Row> rows;
  for (const Setting& setting : settings) {
    for (bench::Row& row : cycle_rows(setting)) rows.push_back(std::move(row));
  }
  for (const Setting& setting : settings) {
    for (bench::Row& row : try_rows(setting)) rows.push_back(std::move(row));
  }
  bench::publish(arguments[1], rows);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::cerr << "usage: bench_cycle <file for the figures> <socket> <port> <the server's core> <our core>\n";
    return 2;
  }
  try {
    run(argv);
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "bench_cycle: " << e.what() << '\n';
    return 1;
  }
}
