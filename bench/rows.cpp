#include "rows.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace bench {

namespace {

using Line = std::array<std::string, 7>;

std::string goal_text(const Row& row) {
  if (row.bound == Bound::none) return "";
  return (row.bound == Bound::at_most ? "≤ " : "≥ ") + number(row.goal);
}

std::string figure(double value, const std::string& unit) { return value < 0 ? "" : number(value) + " " + unit; }

Line line_of(const Row& row) {
  return {row.work,
          row.against,
          figure(row.floor, row.unit),
          figure(row.ours, row.unit),
          row.ratio < 0 ? "" : number(row.ratio),
          goal_text(row),
          row.bound == Bound::none ? ""
          : row.met()              ? "met"
                                   : "**not met**"};
}

// In characters, for UTF-8.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::string number(double value) {
  std::array<char, 32> text{};
  // The second digit behind the point of a small figure is what the goals are about; of a large one it is noise.
  std::snprintf(text.data(), text.size(), "%.*f", value < 10 ? 2 : value < 100 ? 1 : 0, value);
  return text.data();
}

void print(std::ostream& out, const std::vector<Row>& rows) {
  for (auto from = rows.begin(); from != rows.end();) {
    const auto to = std::find_if(from, rows.end(), [&](const Row& row) { return row.table != from->table; });
    std::vector<Line> lines{{"work", "against", "floor", "redlease", "ratio", "goal", ""}};
    std::transform(from, to, std::back_inserter(lines), line_of);
    std::array<std::size_t, 7> widths{};
    for (const Line& line : lines) {
      for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], width(line[i]));
    }
    out << "### " << from->table << "\n\n";
    for (const Line& line : lines) {
      for (std::size_t i = 0; i < line.size(); ++i) {
        out << "| " << line[i] << std::string(widths[i] - width(line[i]) + 1, ' ');
      }
      out << "|\n";
      if (&line != &lines.front()) continue;
      for (std::size_t i = 0; i < line.size(); ++i) {
        out << '|' << std::string(widths[i] + 1, '-') << (i >= 2 && i <= 5 ? ':' : '-');
      }
      out << "|\n";
    }
    out << '\n';
    from = to;
  }
}

void publish(const std::string& file, const std::vector<Row>& rows) {
  print(std::cout, rows);
  std::cout.flush();
  std::ofstream out(file, std::ios::app);
  for (const Row& row : rows) {
    out << row.table << '\t' << row.work << '\t' << row.against << '\t' << row.unit << '\t' << row.floor << '\t'
        << row.ours << '\t' << row.ratio << '\t' << static_cast<int>(row.bound) << '\t' << row.goal << '\n';
  }
  if (!out.flush()) throw std::runtime_error("the figures could not be written to " + file);
}

std::vector<Row> read_rows(const std::string& file) {
  std::ifstream in(file);
  std::vector<Row> rows;
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    Row row;
    for (std::string* text : {&row.table, &row.work, &row.against, &row.unit}) std::getline(fields, *text, '\t');
    int bound = 0;
    fields >> row.floor >> row.ours >> row.ratio >> bound >> row.goal;
    if (!fields) throw std::runtime_error("not a line of figures: " + line);
    row.bound = static_cast<Bound>(bound);
    rows.push_back(std::move(row));
  }
  if (rows.empty()) throw std::runtime_error("there are no figures in " + file);
  return rows;
}

}  // namespace bench
