#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "redlease/clock.hpp"

namespace redlease {
inline namespace v0 {

// Times and whom they are for, the earliest first. Nothing is taken out before its time: whoever is woken looks whether
// it still means anything, and sweep() drops in one go what does not. So a change touches no member but its own, which
// with very many of them is what the time goes into. Four children to a node: fewer lines of the cache than with two.
class TimerHeap {
 public:
  struct Node {
    Deadline at;
    std::uint32_t slot, generation;
  };

  bool empty() const noexcept { return nodes_.empty(); }
  std::size_t size() const noexcept { return nodes_.size(); }
  Deadline next() const noexcept { return nodes_.empty() ? Deadline::max() : nodes_.front().at; }
  const Node& top() const noexcept { return nodes_.front(); }

  void push(const Node& node) {
    if (nodes_.size() == nodes_.capacity()) nodes_.reserve(nodes_.size() + nodes_.size() / 8 + 64);
    nodes_.push_back(node);
    std::size_t place = nodes_.size() - 1;
    for (; place > 0 && node.at < nodes_[(place - 1) / 4].at; place = (place - 1) / 4) {
      nodes_[place] = nodes_[(place - 1) / 4];
    }
    nodes_[place] = node;
  }

  void pop() noexcept {
    const Node last = nodes_.back();
    nodes_.pop_back();
    if (!nodes_.empty()) sink(0, last);
  }

  void clear() noexcept { nodes_.clear(); }

  template <class Stale>
  void sweep(Stale stale) noexcept {
    std::erase_if(nodes_, stale);
    for (std::size_t place = nodes_.size() / 4 + 1; place-- > 0;) {
      if (place < nodes_.size()) sink(place, nodes_[place]);
    }
  }

 private:
  void sink(std::size_t place, const Node node) noexcept {
    for (;;) {
      const std::size_t first = place * 4 + 1;
      if (first >= nodes_.size()) break;
      std::size_t least = first;
      for (std::size_t i = first + 1; i < std::min(first + 4, nodes_.size()); ++i) {
        if (nodes_[i].at < nodes_[least].at) least = i;
      }
      if (nodes_[least].at >= node.at) break;
      nodes_[place] = nodes_[least];
      place = least;
    }
    nodes_[place] = node;
  }

  std::vector<Node> nodes_;
};

}  // namespace v0
}  // namespace redlease
