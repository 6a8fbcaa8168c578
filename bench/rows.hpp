#pragma once
// The figures, as the programs hand them to the report.
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace bench {

enum class Bound : std::uint8_t { none, at_most, at_least };

// One comparison. A figure that there is none of is negative.
struct Row {
  std::string table;    // heading
  std::string work;     // what was done, where
  std::string against;  // what it is compared with
  std::string unit;
  double floor{-1}, ours{-1}, ratio{-1};
  Bound bound{Bound::none};
  double goal{-1};  // of the ratio; of the figure itself if there is no floor

  double judged() const noexcept { return ratio >= 0 ? ratio : ours; }
  // By what is shown: two digits behind the point.
  bool met() const noexcept {
    constexpr double half_a_digit = 0.005;
    return bound == Bound::at_most ? judged() < goal + half_a_digit : judged() >= goal - half_a_digit;
  }
};

std::string number(double);

// Markdown that reads well on a terminal, a heading for each table.
void print(std::ostream&, const std::vector<Row>&);

// Prints them and appends them to the file.
void publish(const std::string& file, const std::vector<Row>&);
std::vector<Row> read_rows(const std::string& file);

}  // namespace bench
