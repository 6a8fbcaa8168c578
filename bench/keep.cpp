// S3: many leases kept by one process, against renewals sent in a pipeline without the library.
//   bench_keep <file for the figures> <socket> [seconds to hold]
#include <malloc.h>
#include <redlease/redlease.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "measure.hpp"
#include "raw.hpp"
#include "rows.hpp"

namespace {

using namespace std::chrono_literals;

constexpr std::size_t batch = 512;
constexpr const char* renew_script =
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) else return 0 end";

std::string name(std::size_t i) { return "bench:keep:" + std::to_string(100'000 + i); }

// CPU time of one renewal of so many leases by hiredis alone: at the same pace, in few large pieces.
double floor_of(bench::Raw& raw, std::size_t count, redlease::Millis ttl) {
  const std::string sha = raw.call({"SCRIPT", "LOAD", renew_script})->str;
  const std::string token(49, 'p');
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    names.push_back(name(i));
    raw.call({"SET", names.back(), token, "PX", "60000"});
  }
  constexpr int ticks = 20;  // in a third of the ttl
  const double cpu = bench::cpu_us();
  for (int tick = 0; tick < 2 * ticks; ++tick) {
    std::this_thread::sleep_for(ttl / 3 / ticks);
    const std::size_t share = count / ticks;
    const std::size_t begin = static_cast<std::size_t>(tick % ticks) * share;
    for (std::size_t from = begin; from < begin + share; from += batch) {
      const std::size_t to = std::min(from + batch, begin + share);
      for (std::size_t i = from; i < to; ++i) raw.append({"EVALSHA", sha, "1", names[i], token, "60000"});
      for (std::size_t i = from; i < to; ++i) raw.receive();
    }
  }
  const double each = (bench::cpu_us() - cpu) / static_cast<double>(2 * count);
  for (const std::string& each_name : names) raw.call({"DEL", each_name});
  return each;
}

double renewals_so_far(bench::Raw& raw) {
  const std::string text = raw.call({"INFO", "commandstats"})->str;
  double calls = 0;
  for (const char* command : {"cmdstat_evalsha:calls=", "cmdstat_eval:calls="}) {
    const auto at = text.find(command);
    if (at != std::string::npos) calls += std::stod(text.substr(at + std::string_view(command).size()));
  }
  return calls;
}

double heap() { return static_cast<double>(::mallinfo2().uordblks + ::mallinfo2().hblkhd); }

double threads() {
  return static_cast<double>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

void keep(std::vector<bench::Row>& rows, const std::string& url, std::size_t count, redlease::Millis ttl,
          std::chrono::seconds hold) {
  bench::Raw raw(url);
  const double floor = floor_of(raw, count, ttl);
  redlease::Client client(url, {.name = "bench-keep"});
  (void)client.ping();
  std::vector<redlease::LeaseGuard> guards;
  guards.reserve(count);
  const double threads_before = threads();
  const double heap_before = heap();
  for (std::size_t i = 0; i < count; ++i) guards.emplace_back(client, name(i), redlease::LeaseOptions{.ttl = ttl});
  const double bytes = (heap() - heap_before) / static_cast<double>(count);
  const double more_threads = threads() - threads_before;
  std::this_thread::sleep_for(ttl / 3);  // past the beginning, in which all are young

  const double renewals_before = renewals_so_far(raw);
  const double cpu_before = bench::cpu_us();
  const double begun = bench::now_us();
  std::this_thread::sleep_for(hold);
  const double cpu = bench::cpu_us() - cpu_before;
  const double renewals = renewals_so_far(raw) - renewals_before;
  const double ttls = (bench::now_us() - begun) / 1e3 / static_cast<double>(ttl.count());

  const auto lost = std::count_if(guards.begin(), guards.end(), [](const auto& guard) { return !guard.held(); });
  const std::string clients = raw.call({"CLIENT", "LIST"})->str;
  double connections = 0;
  for (auto at = clients.find("name=bench-keep"); at != std::string::npos;
       at = clients.find("name=bench-keep", at + 1)) {
    ++connections;
  }
  guards.clear();

  const std::string work = std::to_string(count) + " leases of " + std::to_string(ttl.count() / 1'000) + " s";
  const std::string table = "S3: keeping, " + std::to_string(hold.count()) + " s";
  const auto goal = count >= 10'000 ? bench::Bound::at_most : bench::Bound::none;
  rows.push_back({table, work + ": client CPU a renewal", "hiredis, renewals in a pipeline", "µs", floor,
                  cpu / renewals, cpu / renewals / floor, goal, 1.5});
  rows.push_back({table, work + ": renewals a lease and ttl", "3", "", 3, renewals / static_cast<double>(count) / ttls,
                  renewals / static_cast<double>(count) / ttls / 3, goal, 1.1});
  rows.push_back({table, work + ": lost", "", "", -1, static_cast<double>(lost), -1, bench::Bound::at_most, 0});
  rows.push_back({table, work + ": threads more", "", "", -1, more_threads, -1, bench::Bound::at_most, 1});
  rows.push_back({table, work + ": connections", "", "", -1, connections, -1, bench::Bound::at_most, 2});
  rows.push_back({table, work + ": heap a lease", "", "bytes", -1, bytes, -1, goal, 450});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    std::cerr << "usage: bench_keep <file for the figures> <socket> [seconds to hold]\n";
    return 2;
  }
  try {
    const std::string url = std::string("unix://") + argv[2];
    const std::chrono::seconds hold(argc == 4 ? std::atoi(argv[3]) : 20);
    std::vector<bench::Row> rows;
    keep(rows, url, 1'000, 3s, hold);
    keep(rows, url, 10'000, 3s, hold);
    keep(rows, url, 100'000, 30s, hold);
    bench::publish(argv[1], rows);
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "bench_keep: " << e.what() << '\n';
    return 1;
  }
}
