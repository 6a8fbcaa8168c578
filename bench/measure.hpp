#pragma once
// Variants of one piece of work, measured turn by turn: what the machine does meanwhile strikes all of them alike, so
// the ratio within a round means something where the times do not.
#include <functional>
#include <string_view>
#include <vector>

namespace bench {

double median(std::vector<double>);

// Of the calling thread and of those it starts from now on.
void pin_to(int core);

double now_us() noexcept;  // any epoch
double cpu_us() noexcept;  // of this process

// What one turn of a variant gave; the meaning of the figures is up to whoever measures.
struct Turn {
  double first{}, second{};
};

using Variant = std::function<Turn()>;

class Rounds {
 public:
  // One warm-up round, which does not count, then so many others.
  Rounds(int rounds, const std::vector<Variant>&);

  double typical(std::size_t variant, double Turn::*figure) const;
  // The median of the rounds' own ratios.
  double ratio(std::size_t variant, std::size_t to, double Turn::*figure) const;

 private:
  std::vector<std::vector<Turn>> turns_;  // by round, by variant
};

// A turn of so many cycles: the median time of a cycle and the CPU time that this process spent on one.
struct Cycles {
  static constexpr auto p50 = &Turn::first;
  static constexpr auto cpu = &Turn::second;
};
Turn time_cycles(int at_most, const std::function<void()>& cycle);

}  // namespace bench
