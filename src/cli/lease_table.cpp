#include "cli/lease_table.hpp"

#include <fmt/format.h>

#include "cli/duration.hpp"
#include "cli/table.hpp"

namespace redlease::cli {
namespace {

std::vector<Cell> row(const std::string& key, const LeaseInfo& info) {
  std::vector<Cell> cells{{printable(key)}};
  if (!info.held) {
    cells.push_back({"(free)", Tint::good});
  } else {
    cells.push_back(info.holder.empty() ? Cell{"(not ours)", Tint::warn} : Cell{printable(info.holder)});
  }
  cells.push_back({printable(info.label)});
  cells.push_back({info.held_for ? show(*info.held_for) : ""});
  cells.push_back(!info.held ? Cell{} : info.remaining ? Cell{show(*info.remaining)} : Cell{"never", Tint::bad});
  const auto fence = static_cast<std::uint64_t>(info.fence);
  cells.push_back({fence == 0 ? "" : fmt::format("{}", fence), info.held ? Tint::plain : Tint::faint});
  cells.push_back({fmt::format("{}", info.waiters), info.waiters > 0 ? Tint::warn : Tint::plain});
  return cells;
}

}  // namespace

std::vector<std::string> lease_lines(const std::map<std::string, LeaseInfo>& leases, std::size_t width,
                                     const Screen& screen) {
  std::vector<std::vector<Cell>> rows;
  for (const auto& [key, info] : leases) rows.push_back(row(key, info));
  return table_lines({{"KEY", false, true, 0},
                      {"HOLDER", false, true, 0},
                      {"LABEL", false, true, 2},
                      {"HELD FOR", true, false, 3},
                      {"EXPIRES IN", true, false, 1},
                      {"FENCE", true, false, 4},
                      {"WAITERS", true, false, 0}},
                     rows, width, screen);
}

}  // namespace redlease::cli
