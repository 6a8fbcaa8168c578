// S1t: threads with a key each over one Client, against a connection for each thread without the library.
//   bench_threads <file for the figures> <socket>
#include <atomic>
#include <deque>
#include <exception>
#include <functional>
#include <iostream>
#include <latch>
#include <redlease/redlease.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "measure.hpp"
#include "recording.hpp"
#include "rows.hpp"

namespace {

using namespace std::chrono_literals;

constexpr int most_threads = 16;
constexpr int rounds = 15;
constexpr auto turn = 120ms;
constexpr int batch = 100;

constexpr auto rate = &bench::Turn::first;

// Cycles per second of so many threads together. The work gets the number of its thread; it says how many cycles it
// did.
bench::Turn run_threads(int threads, const std::function<int(std::size_t)>& work) {
  std::atomic<bool> stop{false};
  std::atomic<long> done{0};
  std::atomic<bool> failed{false};
  std::latch start(threads + 1);
  std::vector<std::jthread> running;
  for (std::size_t i = 0; i < static_cast<std::size_t>(threads); ++i) {
    running.emplace_back([&, i] {
      start.arrive_and_wait();
      long mine = 0;
      try {
        while (!stop.load(std::memory_order_relaxed)) mine += work(i);
      } catch (const std::exception& e) {
        if (!failed.exchange(true)) std::cerr << e.what() << '\n';
      }
      done += mine;
    });
  }
  start.arrive_and_wait();
  const double begun = bench::now_us();
  std::this_thread::sleep_for(turn);
  stop = true;
  running.clear();
  const double seconds = (bench::now_us() - begun) / 1e6;
  if (failed) throw std::runtime_error("a thread could not go on");
  return {static_cast<double>(done) / seconds, 0};
}

void run(const std::string& file, const std::string& socket) {
  const std::string url = "unix://" + socket;
  redlease::Client client(url, {.max_connections = most_threads});
  std::deque<redlease::LeaseKey> keys;
  std::deque<bench::Raw> connections;
  std::deque<bench::Recording> recordings;
  const auto ours = [&](std::size_t i) {
    auto lease = client.try_acquire(keys[i]).lease();
    if (!lease || lease->release() != redlease::ReleaseOutcome::released) {
      throw std::runtime_error("a cycle on a free key did not go through");
    }
    return 1;
  };
  for (std::size_t i = 0; i < most_threads; ++i) {
    keys.emplace_back("bench:thread:" + std::to_string(i));
    connections.emplace_back(url);
    recordings.push_back(bench::Recording::of(url, 64, [&] { ours(i); }));
  }
  const auto replay = [&](std::size_t i) {
    recordings[i].replay(connections[i]);
    return 1;
  };
  const auto pipelined = [&](std::size_t i) {
    recordings[i].replay_at_once(connections[i], batch);
    return batch;
  };

  std::vector<bench::Row> rows;
  for (const int threads : {1, 2, 4, 8, 16}) {
    const bench::Rounds r(rounds,
                          {[&] { return run_threads(threads, replay); }, [&] { return run_threads(threads, ours); },
                           [&] { return run_threads(1, pipelined); }});
    const std::string name = std::to_string(threads) + (threads == 1 ? " thread" : " threads");
    const std::string table = "S1t: threads, each with a key of its own, over one Client";
    rows.push_back({table, name, "replay, a connection per thread", "cycles/s", r.typical(0, rate), r.typical(1, rate),
                    r.ratio(1, 0, rate), threads == 1 ? bench::Bound::none : bench::Bound::at_least, 0.95});
    if (threads != 1 && threads != most_threads) continue;
    rows.push_back({table, name, "replay, 100 cycles at once", "cycles/s", r.typical(2, rate), r.typical(1, rate),
                    r.ratio(1, 2, rate)});
  }
  bench::publish(file, rows);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: bench_threads <file for the figures> <socket>\n";
    return 2;
  }
  try {
    run(argv[1], argv[2]);
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "bench_threads: " << e.what() << '\n';
    return 1;
  }
}
