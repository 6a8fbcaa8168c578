// S2: waiters for one key, each of which holds it for a moment, against a token passed on by BLPOP and LPUSH.
//   bench_handoff <file for the figures> <socket> <core, or "all"> [most waiters]
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <exception>
#include <iostream>
#include <map>
#include <redlease/redlease.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "account.hpp"
#include "crew.hpp"
#include "measure.hpp"
#include "rows.hpp"
#include "works.hpp"

namespace {

using namespace std::chrono_literals;
using bench::Bound;
using redlease::Millis;

constexpr Millis ttl = 30s;

Millis heartbeat_of(Millis lease_ttl) { return std::clamp<Millis>(lease_ttl / 6, 1s, 5s); }

struct Setting {
  std::string url;
  bool one_core;
  bench::Raw& raw;
};

// Until those who came are in the queue: the server has little to do. Those who poll never let it rest.
void settle(bench::Raw& raw, std::size_t waiters) {
  const double limit = bench::now_us() + 300e3 + static_cast<double>(waiters) * 500;
  int quiet = 0;
  double before = bench::commands_served(raw);
  while (quiet < 2 && bench::now_us() < limit) {
    std::this_thread::sleep_for(20ms);
    const double now = bench::commands_served(raw);
    quiet = now - before <= 2 + static_cast<double>(waiters) / 50 ? quiet + 1 : 0;
    before = now;
  }
}

struct Case {
  std::size_t waiters, processes;
  Millis turn;
  int rounds;
  bool inbox_each{false};

  std::string name() const {
    std::string text = std::to_string(waiters) + " waiters";
    if (inbox_each) text += ", an inbox each";
    if (processes > 1) text += " in " + std::to_string(processes) + " processes";
    return text;
  }
};

// One turn; commands and CPU for each hand-off.
struct Result {
  bench::Seen seen;
  std::map<std::string, double> by_name{};
  double rate{}, commands{}, cpu{};
  double apart() const noexcept { return seen.most - seen.fewest; }
};

Result play(const Setting& at, const Case& what, bench::Work work) {
  bench::Crew crew(std::move(work), what.waiters, what.processes);
  settle(at.raw, what.waiters);
  const bench::Account before = bench::account_of(at.raw);
  crew.begin();
  std::this_thread::sleep_for(what.turn);
  const bench::Account after = bench::account_of(at.raw);
  Result result{.seen = crew.so_far()};
  crew.end();
  const double passes = std::max(result.seen.passes, 1.0);
  result.rate = result.seen.passes / result.seen.elapsed * 1e6;
  const bench::Account between = after - before;
  result.by_name = between.commands;
  for (auto& [name, calls] : result.by_name) calls /= passes;
  result.commands = bench::sum(result.by_name);
  result.cpu = between.cpu / passes;
  return result;
}

class Comparison {
 public:
  Comparison(const Setting& at, const Case& what) : at_(at), case_(what) {
    redlease::ClientOptions options;
    if (what.inbox_each) options.max_inboxes = what.waiters;
    for (int round = 0; round < what.rounds; ++round) {
      const auto floor = [&] { floor_.push_back(play(at, what, bench::token_work(at.url, at.raw))); };
      if (round % 2 == 0) floor();
      ours_.push_back(play(at, what, bench::lease_work(at.url, ttl, options)));
      if (round % 2 == 1) floor();
    }
  }

  std::vector<bench::Row> rows(const std::string& table) const {
    constexpr const char* against = "BLPOP and LPUSH";
    const std::size_t waiters = case_.waiters;
    const auto row = [&](const char* figure, const char* unit, auto get, Bound bound, double goal) {
      std::vector<double> floor, ours, ratios;
      for (std::size_t i = 0; i < ours_.size(); ++i) {
        floor.push_back(get(floor_[i]));
        ours.push_back(get(ours_[i]));
        ratios.push_back(ours.back() / std::max(floor.back(), 1e-3));
      }
      return bench::Row{table,
                        case_.name() + ": " + figure,
                        against,
                        unit,
                        bench::median(std::move(floor)),
                        bench::median(std::move(ours)),
                        bench::median(std::move(ratios)),
                        bound,
                        goal};
    };
    const double gap_goal = waiters > 128 ? 3 : at_.one_core ? 2.5 : 2;
    std::vector<bench::Row> rows{
        row(
            "gap p50", "µs", [](const Result& r) { return r.seen.gap_p50; },
            waiters > 500 ? Bound::none : Bound::at_most, gap_goal),
        row(
            "hand-offs", "/s", [](const Result& r) { return r.rate; }, waiters > 128 ? Bound::none : Bound::at_least,
            waiters > 32 ? 0.90 : 0.95),
        row(
            "longest wait", "ms", [](const Result& r) { return r.seen.longest / 1e3; },
            waiters < 8 ? Bound::none : Bound::at_most, 1.3),
        row(
            "server CPU a hand-off", "µs", [](const Result& r) { return r.cpu; }, Bound::none, -1),
        row(
            "commands a hand-off", "", [](const Result& r) { return r.commands; }, Bound::at_most, commands_goal()),
        fairness(table)};
    rows[4].ratio = -1;  // its goal is a number of commands
    rows[4].against = commands();
    return rows;
  }

 private:
  // Which they were, in the last round.
  std::string commands() const {
    std::string text;
    for (const auto& [name, calls] : ours_.back().by_name) {
      if (calls >= 0.01) text += (text.empty() ? "" : ", ") + name + ' ' + bench::number(calls);
    }
    return text;
  }

  // A PING in front of each release is allowed for, and so are polls where waits come near a heartbeat.
  double commands_goal() const {
    const double heartbeat = static_cast<double>(heartbeat_of(ttl).count()) * 1e3;
    std::vector<double> goals;
    for (const Result& r : ours_) {
      const auto ping = r.by_name.find("ping");
      const double pings = ping == r.by_name.end() ? 0 : ping->second;
      const double beats = r.seen.longest < heartbeat / 2 ? 0 : r.seen.elapsed / heartbeat;
      const double polls = 1.15 * beats * static_cast<double>(case_.waiters) / std::max(r.seen.passes, 1.0);
      goals.push_back((pings > 0.5 ? 3.05 : 2.05) + polls);
    }
    return bench::median(std::move(goals));
  }

  // Of the worst round.
  bench::Row fairness(const std::string& table) const {
    const auto worst = [](const std::vector<Result>& results) {
      return *std::max_element(results.begin(), results.end(),
                               [](const Result& a, const Result& b) { return a.apart() < b.apart(); });
    };
    const auto span = [](const Result& r) {
      return std::to_string(std::lround(r.seen.fewest)) + " to " + std::to_string(std::lround(r.seen.most));
    };
    const Result floor = worst(floor_), ours = worst(ours_);
    return {table,
            case_.name() + ": acquisitions differ by",
            "floor " + span(floor) + ", redlease " + span(ours),
            "",
            floor.apart(),
            ours.apart(),
            -1,
            Bound::at_most,
            1};
  }

  const Setting& at_;
  const Case case_;
  std::vector<Result> floor_, ours_;
};

// Requests of those who merely wait.
bench::Row waiting(const Setting& at, std::size_t waiters) {
  constexpr Millis short_ttl = 6s;
  constexpr int beats = 4;
  bench::Crew crew(bench::lease_work(at.url, short_ttl), waiters, 1);
  settle(at.raw, waiters);
  const bench::Account before = bench::account_of(at.raw);
  std::this_thread::sleep_for(beats * heartbeat_of(short_ttl));
  const double each = bench::sum((bench::account_of(at.raw) - before).commands) / beats / static_cast<double>(waiters);
  crew.end();
  return {"S2: waiting for a holder that stays",
          std::to_string(waiters) + " waiters: requests of each, a heartbeat",
          "1",
          "",
          1,
          each,
          each,
          Bound::at_most,
          1.15};
}

// A connection for each waiter of the floor, on both sides, and some more.
void make_room(const Setting& at, const Case& what) {
  const std::size_t here = what.waiters / what.processes + 200;
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::max<rlim_t>(files.rlim_cur, std::min<rlim_t>(files.rlim_max, here));
  if (files.rlim_cur < here) files.rlim_cur = files.rlim_max = here;  // only root may
  if (::setrlimit(RLIMIT_NOFILE, &files) != 0) {
    throw std::runtime_error("needs " + std::to_string(here) + " open files in a process");
  }
  const double there = static_cast<double>(what.waiters) + 300;
  if (bench::most_connections(at.raw) < there) {
    throw std::runtime_error("needs a server with maxclients " + bench::number(there));
  }
}

void run(const std::string& file, const Setting& at, std::size_t most) {
  std::vector<bench::Row> rows;
  // What cannot be measured is a goal not met.
  const auto attempt = [&](const std::string& table, const std::string& what, const auto& measure) {
    try {
      measure();
    } catch (const std::exception& e) {
      rows.push_back({table, what + ": measured", e.what(), "", -1, 0, -1, Bound::at_least, 1});
    }
  };
  for (const bool threads : {true, false}) {
    const std::string table = std::string("S2: hand-off between ") +
                              (threads ? "threads of one process" : "processes") + (at.one_core ? ", one core" : "");
    for (Case what : {Case{2, 2, 500ms, 9}, Case{8, 8, 500ms, 9}, Case{32, 32, 500ms, 9}, Case{128, 8, 600ms, 9},
                      Case{128, 1, 600ms, 5, true}, Case{500, 8, 1'400ms, 3}, Case{2'000, 1, 5s, 1}}) {
      if (what.waiters > most || (what.processes == 1 && (!threads || at.one_core))) continue;
      if (threads) what.processes = 1;
      attempt(table, what.name(), [&] {
        make_room(at, what);
        for (bench::Row& row : Comparison(at, what).rows(table)) rows.push_back(std::move(row));
      });
    }
  }
  if (!at.one_core) {
    for (const std::size_t waiters : {2U, 128U, 2'000U}) {
      if (waiters > most) continue;
      attempt("S2: waiting for a holder that stays", std::to_string(waiters) + " waiters",
              [&] { rows.push_back(waiting(at, waiters)); });
    }
  }
  bench::publish(file, rows);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::cerr << "usage: bench_handoff <file for the figures> <socket> <core, or \"all\"> [most waiters]\n";
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);  // hiredis would rather be killed than told that the server is gone
  try {
    const bool one_core = std::string_view(argv[3]) != "all";
    if (one_core) bench::pin_to(std::stoi(argv[3]));
    const std::string url = std::string("unix://") + argv[2];
    bench::Raw raw(url);
    run(argv[1], {url, one_core, raw}, argc == 5 ? std::stoul(argv[4]) : 2'000);
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "bench_handoff: " << e.what() << '\n';
    return 1;
  }
}
