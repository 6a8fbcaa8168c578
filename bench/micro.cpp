// The parts that need no server.
//   bench_micro <file for the figures>
#include <benchmark/benchmark.h>

#include <exception>
#include <iostream>
#include <redlease/redlease.hpp>
#include <redlease/wire/resp.hpp>
#include <redlease/wire/script.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "rows.hpp"

namespace {

const std::string sha(40, 'a');
const std::string token(49, 'b');

void memory_store_cycle(benchmark::State& state) {
  redlease::Client client("memory:");
  const redlease::LeaseKey key("invoices");
  while (state.KeepRunning()) {
    auto lease = client.try_acquire(key).lease();
    benchmark::DoNotOptimize(lease->release());
  }
}
BENCHMARK(memory_store_cycle)->Name("MemoryStore: acquire and release");

void memory_store_busy(benchmark::State& state) {
  redlease::Client client("memory:");
  const redlease::LeaseKey key("invoices");
  const auto held = client.try_acquire(key);
  while (state.KeepRunning()) benchmark::DoNotOptimize(client.try_acquire(key).outcome());
}
BENCHMARK(memory_store_busy)->Name("MemoryStore: try on a held key");

void held(benchmark::State& state) {
  redlease::Client client("memory:");
  const auto lease = client.try_acquire("invoices").lease();
  while (state.KeepRunning()) benchmark::DoNotOptimize(lease->held());
}
BENCHMARK(held)->Name("Lease::held");

void token_generation(benchmark::State& state) {
  while (state.KeepRunning()) benchmark::DoNotOptimize(redlease::OwnerToken::generate());
}
BENCHMARK(token_generation)->Name("OwnerToken::generate");

void acquire_frame(benchmark::State& state) {
  std::string frame;
  while (state.KeepRunning()) {
    frame.clear();
    redlease::append_command(frame, {"EVALSHA", sha, "2", "invoices", "invoices:{invoices}lease:meta", token, "30000",
                                     "1700000000000000", "0", "host:1234 "});
    benchmark::DoNotOptimize(frame.data());
  }
}
BENCHMARK(acquire_frame)->Name("the frame of an acquire");

void acquire_reply(benchmark::State& state) {
  redlease::ReplyReader reader;
  while (state.KeepRunning()) {
    reader.feed("*3\r\n:1\r\n$16\r\n1782579200123456\r\n$16\r\n1700000000000000\r\n");
    if (reader.next() != redlease::ReplyReader::State::ready) state.SkipWithError("no reply came out");
  }
}
BENCHMARK(acquire_reply)->Name("the reply to an acquire");

void sha1(benchmark::State& state) {
  const std::string text(1'500, 'c');
  while (state.KeepRunning()) benchmark::DoNotOptimize(redlease::sha1_hex(text));
}
BENCHMARK(sha1)->Name("SHA-1 of a script (done by the compiler)");

// The median of the repetitions of each.
class ToRows final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }  // NOLINT(readability-identifier-naming)
  void ReportRuns(const std::vector<Run>& runs) override {      // NOLINT(readability-identifier-naming)
    for (const Run& run : runs) {
      if (run.error_occurred) failed_ = true;
      if (run.run_type != Run::RT_Aggregate || run.aggregate_name != "median") continue;
      rows_.push_back(
          {"Parts that need no server", run.run_name.function_name, "", "ns", -1, run.GetAdjustedCPUTime()});
    }
  }
  const std::vector<bench::Row>& rows() const noexcept { return rows_; }
  bool failed() const noexcept { return failed_; }

 private:
  std::vector<bench::Row> rows_;
  bool failed_{false};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: bench_micro <file for the figures>\n";
    return 2;
  }
  std::string repetitions = "--benchmark_repetitions=5";
  std::string min_time = "--benchmark_min_time=0.05";
  std::string aggregates = "--benchmark_report_aggregates_only=true";
  char* flags[] = {argv[0], repetitions.data(), min_time.data(), aggregates.data()};
  int count = 4;
  benchmark::Initialize(&count, flags);
  try {
    ToRows reporter;
    benchmark::RunSpecifiedBenchmarks(&reporter);
    if (reporter.failed() || reporter.rows().empty()) throw std::runtime_error("a part could not be measured");
    bench::publish(argv[1], reporter.rows());
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "bench_micro: " << e.what() << '\n';
    return 1;
  }
}
