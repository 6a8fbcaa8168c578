#include "drawing.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>

namespace bench {

namespace {

constexpr double line_height = 20;
constexpr double label_width = 390;
constexpr double bar_room = 330;
constexpr double total_width = label_width + bar_room + 60;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace

std::string draw(const std::vector<Row>& all) {
  std::vector<Row> rows;
  std::copy_if(all.begin(), all.end(), std::back_inserter(rows),
               [](const Row& row) { return row.bound != Bound::none && row.ratio >= 0; });
  double most = 1;
  for (const Row& row : rows) most = std::max({most, row.ratio, row.goal});
  const auto x = [&](double ratio) { return label_width + ratio / most * bar_room; };

  std::ostringstream body;
  double y = 10;
  const auto text = [&](double at, const std::string& what, const char* attributes) {
    body << R"(<text x=")" << at << R"(" y=")" << y + 14 << R"(" )" << attributes << '>' << escaped(what)
         << "</text>\n";
  };
  const std::string* table = nullptr;
  for (const Row& row : rows) {
    if (table == nullptr || *table != row.table) {
      table = &row.table;
      y += 6;
      text(10, row.table, R"(font-weight="bold")");
      y += line_height + 2;
    }
    text(label_width - 8, row.work + " / " + row.against, R"(text-anchor="end")");
    body << R"(<rect x=")" << label_width << R"(" y=")" << y + 3 << R"(" width=")" << x(row.ratio) - label_width
         << R"(" height=")" << line_height - 6 << R"(" fill=")" << (row.met() ? "#4c956c" : "#c8553d") << "\"/>\n"
         << R"(<line x1=")" << x(row.goal) << R"(" x2=")" << x(row.goal) << R"(" y1=")" << y << R"(" y2=")"
         << y + line_height << R"(" stroke="#222" stroke-width="2"/>)" << '\n';
    text(x(std::max(row.ratio, row.goal)) + 6, number(row.ratio), "");
    y += line_height;
  }
  y += 6;
  text(label_width, "black marks: the goals; green: met", R"(fill="#555")");
  y += line_height + 6;

  std::ostringstream svg;
  svg << R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 )" << total_width << ' ' << y << R"(" width=")"
      << total_width << R"(" height=")" << y << R"(" font-family="sans-serif" font-size="12">
<title>redlease: ratios to the floors, and the goals</title>
<rect width="100%" height="100%" fill="#fff"/>
)" << body.str()
      << "</svg>\n";
  return svg.str();
}

}  // namespace bench
