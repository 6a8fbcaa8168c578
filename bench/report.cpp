// Makes the figures into the goals' table, a section of a document and a drawing. Ends with 1 if a goal is not met.
//   bench_report <file of figures> <document> <drawing> <line about the machine>
#include <algorithm>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>

#include "drawing.hpp"
#include "rows.hpp"

namespace {

constexpr std::string_view begin_mark = "<!-- figures: written by scripts/bench -->\n";
constexpr std::string_view end_mark = "<!-- end of figures -->\n";

std::string contents(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read " + file);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const std::string& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  if (!out.flush()) throw std::runtime_error("cannot write " + file);
}

void replace_figures(const std::string& file, const std::string& figures) {
  std::string text = contents(file);
  const auto begin = text.find(begin_mark);
  const auto end = text.find(end_mark);
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    throw std::runtime_error(file + " has no place for the figures: two lines of comment mark it");
  }
  const auto from = begin + begin_mark.size();
  text.replace(from, end - from, figures);
  write(file, text);
}

bool report(const std::string& figures, const std::string& document, const std::string& drawing,
            const std::string& machine) {
  std::vector<bench::Row> rows = bench::read_rows(figures);
  // Two runs of one program give two parts of one table.
  std::vector<std::string> tables;
  for (const bench::Row& row : rows) {
    if (std::find(tables.begin(), tables.end(), row.table) == tables.end()) tables.push_back(row.table);
  }
  std::stable_sort(rows.begin(), rows.end(), [&](const bench::Row& a, const bench::Row& b) {
    return std::find(tables.begin(), tables.end(), a.table) < std::find(tables.begin(), tables.end(), b.table);
  });

  std::ostringstream section;
  section << '\n' << machine << "\n\n";
  bench::print(section, rows);
  replace_figures(document, section.str());
  write(drawing, bench::draw(rows));

  std::vector<bench::Row> goals;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(goals),
               [](const bench::Row& row) { return row.bound != bench::Bound::none; });
  const auto met = std::count_if(goals.begin(), goals.end(), [](const bench::Row& row) { return row.met(); });
  std::cout << "## The goals: " << met << " of " << goals.size() << " met\n\n" << machine << "\n\n";
  bench::print(std::cout, goals);
  return static_cast<std::size_t>(met) == goals.size();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: bench_report <file of figures> <document> <drawing> <line about the machine>\n";
    return 2;
  }
  try {
    return report(argv[1], argv[2], argv[3], argv[4]) ? 0 : 1;
  } catch (const std::exception& e) {
    std::cerr << "bench_report: " << e.what() << '\n';
    return 2;
  }
}
