// What our scripts cost the server beyond plain commands, by its own accounts (INFO commandstats).
//   bench_script_cost <file for the figures> <socket>
#include <exception>
#include <functional>
#include <iostream>
#include <redlease/redlease.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "measure.hpp"
#include "recording.hpp"
#include "rows.hpp"

namespace {

using namespace std::chrono_literals;

constexpr int rounds = 15;
constexpr int calls_a_turn = 500;
constexpr auto server_time = &bench::Turn::first;

// Of one call of the command since the accounts were last reset.
double usec_per_call(bench::Raw& raw, const std::string& command) {
  const bench::RawReply info = raw.call({"INFO", "commandstats"});
  const std::string text(info->str, static_cast<std::size_t>(info->len));
  const auto line = text.find("cmdstat_" + command + ":");
  constexpr std::string_view field = "usec_per_call=";
  const auto at = line == std::string::npos ? line : text.find(field, line);
  if (at == std::string::npos) throw std::runtime_error("the server keeps no account of " + command);
  return std::stod(text.substr(at + field.size()));
}

bench::Variant account_of(bench::Raw& raw, std::string command, std::function<void()> cycle) {
  return [&raw, command = std::move(command), cycle = std::move(cycle)] {
    raw.call({"CONFIG", "RESETSTAT"});
    for (int i = 0; i < calls_a_turn; ++i) cycle();
    return bench::Turn{usec_per_call(raw, command), 0};
  };
}

void run(const std::string& file, const std::string& socket) {
  const std::string url = "unix://" + socket;
  redlease::Client client(url);
  bench::Raw raw(url);
  const redlease::LeaseKey free("bench:free");
  const redlease::LeaseKey held("bench:held");
  auto lease = client.try_acquire(held, {.ttl = 10min}).lease();
  if (!lease) throw std::runtime_error("the key to be held could not be acquired");
  const std::string token(49, 'p');

  const auto record = [&](const std::function<void()>& cycle) { return bench::Recording::of(url, 64, cycle); };
  auto acquire = record([&] {
    auto granted = client.try_acquire(free).lease();
    if (!granted) throw std::runtime_error("a free key was not granted");
    granted->abandon();
    raw.call({"DEL", free.str()});
  });
  auto busy = record([&] { (void)client.try_acquire(held); });
  auto renew = record([&] { (void)lease->renew(); });
  auto release = record([&] {
    raw.call({"SET", free.str(), token, "PX", "30000"});
    auto adopted = client.adopt(free, redlease::OwnerToken(token));
    if (adopted.release() != redlease::ReleaseOutcome::released) throw std::runtime_error("nothing was released");
  });
  const auto replayed = [&](bench::Recording& recording) {
    return account_of(raw, "evalsha", [&] { recording.replay(raw); });
  };

  bench::Prepared set({"SET", free.str(), token, "NX", "PX", "30000"});
  bench::Prepared del({"DEL", free.str()});
  bench::Prepared set_held({"SET", held.str(), token, "NX", "PX", "30000"});
  bench::Prepared pexpire({"PEXPIRE", held.str(), "600000"});
  bench::Prepared get({"GET", held.str()});
  const auto set_and_del = [&] {
    raw.call(set);
    raw.call(del);
  };
  const bench::Rounds r(rounds, {account_of(raw, "set", set_and_del), replayed(acquire),  //
                                 account_of(raw, "set", [&] { raw.call(set_held); }), replayed(busy),
                                 account_of(raw, "pexpire", [&] { raw.call(pexpire); }), replayed(renew),
                                 account_of(raw, "del", set_and_del), replayed(release)});
  std::vector<bench::Row> rows;
  const auto add = [&](const char* work, const char* against, std::size_t floor) {
    rows.push_back({"What the scripts cost the server", work, against, "µs", r.typical(floor, server_time),
                    r.typical(floor + 1, server_time), r.ratio(floor + 1, floor, server_time)});
  };
  add("acquire of a free key", "SET NX PX", 0);
  add("acquire of a held key", "SET NX PX that is refused", 2);
  add("renew", "PEXPIRE", 4);
  add("release", "DEL", 6);
  bench::publish(file, rows);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: bench_script_cost <file for the figures> <socket>\n";
    return 2;
  }
  try {
    run(argv[1], argv[2]);
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "bench_script_cost: " << e.what() << '\n';
    return 1;
  }
}
