#include "account.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace bench {

namespace {

constexpr std::array<std::string_view, 15> from_clients{
    "eval",   "evalsha", "script", "subscribe", "unsubscribe", "psubscribe", "ssubscribe", "ping",
    "client", "hello",   "auth",   "select",    "role",        "blpop",      "lpush"};

double field(const std::string& info, const std::string& name) {
  const auto at = info.find('\n' + name + ':');
  if (at == std::string::npos) throw std::runtime_error("INFO does not tell " + name);
  return std::stod(info.substr(at + name.size() + 2));
}

std::string info(Raw& raw, std::string_view section) { return raw.call({"INFO", section})->str; }

}  // namespace

Account account_of(Raw& raw) {
  Account account;
  std::istringstream lines(info(raw, "commandstats"));
  constexpr std::string_view before_name = "cmdstat_";
  constexpr std::string_view before_calls = ":calls=";
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(before_calls);
    if (!line.starts_with(before_name) || colon == std::string::npos) continue;
    std::string name = line.substr(before_name.size(), colon - before_name.size());
    name.resize(std::min(name.size(), name.find('|')));
    if (std::find(from_clients.begin(), from_clients.end(), name) == from_clients.end()) continue;
    account.commands[name] += std::stod(line.substr(colon + before_calls.size()));
  }
  const std::string cpu = info(raw, "cpu");
  account.cpu = (field(cpu, "used_cpu_user") + field(cpu, "used_cpu_sys")) * 1e6;
  return account;
}

Account operator-(const Account& after, const Account& before) {
  Account between{.cpu = after.cpu - before.cpu};
  for (const auto& [name, calls] : after.commands) {
    const auto earlier = before.commands.find(name);
    between.commands[name] = calls - (earlier == before.commands.end() ? 0 : earlier->second);
  }
  return between;
}

double sum(const std::map<std::string, double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0,
                         [](double so_far, const auto& number) { return so_far + number.second; });
}

double commands_served(Raw& raw) { return field(info(raw, "stats"), "total_commands_processed"); }

double most_connections(Raw& raw) { return std::stod(raw.call({"CONFIG", "GET", "maxclients"})->element[1]->str); }

}  // namespace bench
