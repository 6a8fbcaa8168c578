#pragma once
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace redlease::cli {

using Micros = std::chrono::duration<double, std::micro>;

/// How long something took, many times.
class Latencies {
 public:
  static constexpr std::size_t most = 1'000'000;  ///< further ones only count

  void add(std::chrono::nanoseconds);
  std::size_t count() const noexcept { return count_; }
  /// The time that a part (0 to 1) of them did not exceed; 0 if there are none.
  Micros quantile(double part) const;

  struct Bucket {
    Micros up_to;
    std::size_t count;
  };
  /// How many took at most so long and longer than the bucket before, from the first bucket that has any to the last.
  /// The bounds are 1, 1.5, 2, 3, 5 and 7 times the powers of ten, in microseconds.
  std::vector<Bucket> buckets() const;

 private:
  std::vector<std::chrono::nanoseconds> all_;
  std::size_t count_{0};
};

/// One line for each bucket: its bound, a bar and its count; none is wider than `width` columns.
std::vector<std::string> histogram(const std::vector<Latencies::Bucket>&, std::size_t width);

/// "87 µs", "1.25 ms", "2.1 s"
std::string show(Micros);

}  // namespace redlease::cli
