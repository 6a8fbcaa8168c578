// bench: how fast leases are here, in a few seconds.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "cli/commands.hpp"
#include "cli/duration.hpp"
#include "cli/duration_option.hpp"
#include "cli/exit_code.hpp"
#include "cli/latencies.hpp"
#include "cli/lease_options.hpp"
#include "cli/output.hpp"
#include "cli/stop_on_signal.hpp"
#include "cli/table.hpp"
#include "mutex.hpp"
#include "redlease/wire/connection.hpp"
#include "store/key_names.hpp"

namespace redlease::cli {
namespace {

using namespace std::chrono_literals;

constexpr Millis scratch_ttl{10'000};

struct Figures {
  Latencies ping, cycle, hand_over;
  LeaseClock::duration cycling{};
};

class Bench {
 public:
  Bench(const Context& context, std::stop_token stop)
      : context_(context), stop_(std::move(stop)), client_(context.client()), key_("redlease-bench:" + nonce()) {}

  const std::string& key() const { return key_; }

  Figures run(Millis length) {
    Figures figures;
    ping(figures.ping, deadline_in(length * 15 / 100));
    const Deadline begun = LeaseClock::now();
    cycle(figures.cycle, deadline_in(length / 2));
    figures.cycling = LeaseClock::now() - begun;
    hand_over(figures.hand_over, deadline_in(length * 35 / 100));
    return figures;
  }

  // The scratch key expires by itself; the fence that is remembered beside it would only in a month. No news if the
  // server has gone meanwhile.
  void clean_up() const {
    if (context_.in_memory()) return;
    const Limits limits{deadline_in(1'000ms)};
    auto connection = Connection::open(context_.endpoint(), limits);
    if (!connection.has_value()) return;
    const std::string key = context_.prefix() + key_;
    const HelperNames names(key);
    std::string frame;
    append_command(frame, {"DEL", key, names.meta(), names.queue(), names.seen()});
    (void)connection.value()->call(frame, limits);
  }

 private:
  static std::string nonce() { return OwnerToken::generate().str().substr(17, 12); }
  bool over(Deadline end) const { return stop_.stop_requested() || LeaseClock::now() >= end; }

  void ping(Latencies& latencies, Deadline end) {
    do {
      const Deadline before = LeaseClock::now();
      const auto answer = client_.ping();
      if (!answer.has_value()) throw failure(answer.error());
      latencies.add(LeaseClock::now() - before);
    } while (!over(end));
  }

  Lease acquired(const LeaseOptions& options) {
    auto lease = lease_or_explain(context_, client_.acquire(key_, options, stop_), key_, 0, number(Exit::busy));
    return *std::move(lease);  // a busy key is a Failure
  }

  void cycle(Latencies& latencies, Deadline end) {
    do {
      const Deadline before = LeaseClock::now();
      Lease lease = acquired({.ttl = scratch_ttl, .label = "redlease bench"});
      give_back(lease);
      latencies.add(LeaseClock::now() - before);
    } while (!over(end));
  }

  // Two threads, of which one always waits while the other holds: from the release until the other has it.
  void hand_over(Latencies& latencies, Deadline end) {
    std::atomic<Deadline> released{Deadline::max()};
    std::atomic<int> begun{0};  // hand-overs so far
    std::optional<Failure> trouble;
    Mutex mutex;
    std::stop_source enough;
    const std::stop_callback stopped(stop_, [&] { enough.request_stop(); });
    const auto waiting = [&] {
      for (;;) {
        const auto info = client_.inspect(key_);
        if (!info.has_value()) throw failure(info.error());
        if (info.value().waiters > 0) return true;
        if (enough.stop_requested() || LeaseClock::now() >= end) return false;
        std::this_thread::yield();
      }
    };
    const auto take_turns = [&] {
      try {
        while (!enough.stop_requested() && LeaseClock::now() < end) {
          auto result = client_.acquire(key_, {.ttl = scratch_ttl, .wait = scratch_ttl, .label = "redlease bench"},
                                        enough.get_token());
          const Deadline got = LeaseClock::now();
          if (enough.stop_requested()) return;
          Lease lease = *lease_or_explain(context_, std::move(result), key_, 0, number(Exit::busy));
          if (begun++ > 0) {
            const MutexLock lock(mutex);
            latencies.add(got - released.load());
          }
          const bool another = waiting();
          released = LeaseClock::now();
          give_back(lease);
          if (!another) enough.request_stop();
        }
        enough.request_stop();
      } catch (const Failure& failure) {
        const MutexLock lock(mutex);
        if (!trouble) trouble = failure;
        enough.request_stop();
      }
    };
    { const std::jthread one(take_turns), other(take_turns); }
    if (trouble) throw *std::move(trouble);
  }

  const Context& context_;
  const std::stop_token stop_;
  Client client_;
  const std::string key_;
};

Json json_of(const Latencies& latencies) {
  return {{"count", latencies.count()},
          {"p50_us", latencies.quantile(0.5).count()},
          {"p90_us", latencies.quantile(0.9).count()},
          {"p99_us", latencies.quantile(0.99).count()},
          {"max_us", latencies.quantile(1).count()}};
}

double per_second(const Figures& figures) {
  const double seconds = std::chrono::duration<double>(figures.cycling).count();
  return seconds > 0 ? static_cast<double>(figures.cycle.count()) / seconds : 0;
}

void tell_json(const Figures& figures, const Context& context) {
  Json out{{"server", context.server()}, {"ping", json_of(figures.ping)}, {"cycle", json_of(figures.cycle)}};
  out["cycle"]["per_second"] = per_second(figures);
  Json buckets = Json::array();
  for (const auto& [up_to, count] : figures.cycle.buckets()) {
    buckets.push_back({{"up_to_us", up_to.count()}, {"count", count}});
  }
  out["cycle"]["histogram"] = std::move(buckets);
  out["hand_over"] = json_of(figures.hand_over);
  Context::print_json(out);
}

void tell(const Figures& figures, const Context& context) {
  const Screen screen(STDOUT_FILENO);
  const auto width = static_cast<std::size_t>(screen.columns());
  std::vector<std::vector<Cell>> rows;
  const auto row = [&](const std::string& name, const Latencies& latencies) {
    std::vector<Cell> cells{{name}, {fmt::format("{}", latencies.count())}};
    for (const double part : {0.5, 0.9, 0.99, 1.0}) {
      cells.push_back({latencies.count() > 0 ? show(latencies.quantile(part)) : "-"});
    }
    rows.push_back(std::move(cells));
  };
  row("round trip (PING)", figures.ping);
  row("acquire + release", figures.cycle);
  row("hand-over", figures.hand_over);
  std::string text = fmt::format("{}, {:.0f} cycles/s by one client\n\n", context.server(), per_second(figures));
  for (const auto& line : table_lines(
           {{"", false, true}, {"COUNT", true, false, 1}, {"P50", true}, {"P90", true}, {"P99", true}, {"MAX", true}},
           rows, width, screen)) {
    text += line + "\n";
  }
  text += "\nacquire + release\n";
  for (const auto& line : histogram(figures.cycle.buckets(), width)) text += line + "\n";
  print(text);
}

int bench(const Context& context, Millis length) {
  if (length < 100ms || length > 60s) throw Failure(Exit::usage, "usage", "--for must lie between 100ms and 1m");
  const StopOnSignal signals;
  Bench bench(context, signals.token());
  context.remark(fmt::format("takes {}, on the scratch key {}", show(length), context.prefix() + bench.key()));
  Figures figures;
  try {
    figures = bench.run(length);
  } catch (const Failure&) {
    bench.clean_up();
    if (signals.signal() == 0) throw;
  }
  bench.clean_up();
  if (signals.signal() != 0) throw interrupted(signals.signal(), "before all was measured");
  if (context.json()) {
    tell_json(figures, context);
  } else {
    tell(figures, context);
  }
  return number(Exit::ok);
}

}  // namespace

void add_bench(CLI::App& app, Context& context) {
  auto length = std::make_shared<Millis>(5'000);
  CLI::App* command = app.add_subcommand("bench", "Measure how fast leases are here, for a few seconds");
  add_duration(*command, "--for", *length, "How long to measure, 100ms to 1m; default 5s");
  command->callback([&context, length] { context.action = [&context, length] { return bench(context, *length); }; });
}

}  // namespace redlease::cli
