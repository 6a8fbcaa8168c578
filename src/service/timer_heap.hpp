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
// with very many of them is what the time goes into. For the same reason only those that come soon are a heap, of four
// children to a node, and small enough for the cache; the others lie in no order until it is their turn.
class TimerHeap {
 public:
  struct Node {
    Deadline at;
    std::uint32_t slot, generation;
  };

  bool empty() const noexcept { return soon_.empty(); }
  std::size_t size() const noexcept { return soon_.size() + later_.size(); }
  Deadline next() const noexcept { return soon_.empty() ? Deadline::max() : soon_.front().at; }
  const Node& top() const noexcept { return soon_.front(); }

  void push(const Node& node) {
    if (soon_.empty()) soon_until_ = deadline_after(node.at, LeaseClock::duration(1));
    if (node.at < soon_until_) {
      push_soon(node);
    } else {
      append(later_, node);
    }
  }

  void pop() {
    const Node last = soon_.back();
    soon_.pop_back();
    if (!soon_.empty()) {
      sink(0, last);
    } else if (!later_.empty()) {
      move_on();
    }
  }

  void clear() noexcept {
    soon_.clear();
    later_.clear();
  }

  template <class Stale>
  void sweep(Stale stale) {
    std::erase_if(later_, stale);
    std::erase_if(soon_, stale);
    for (std::size_t place = soon_.size() / 4 + 1; place-- > 0;) {
      if (place < soon_.size()) sink(place, soon_[place]);
    }
    if (soon_.empty() && !later_.empty()) move_on();
  }

 private:
  static void append(std::vector<Node>& nodes, const Node& node) {
    if (nodes.size() == nodes.capacity()) nodes.reserve(nodes.size() + nodes.size() / 8 + 64);
    nodes.push_back(node);
  }

  void push_soon(const Node& node) {
    append(soon_, node);
    std::size_t place = soon_.size() - 1;
    for (; place > 0 && node.at < soon_[(place - 1) / 4].at; place = (place - 1) / 4) {
      soon_[place] = soon_[(place - 1) / 4];
    }
    soon_[place] = node;
  }

  // To the next sixteenth of the time that there are any for.
  void move_on() {
    const auto [first, last] = std::minmax_element(
        later_.begin(), later_.end(), [](const Node& one, const Node& other) { return one.at < other.at; });
    soon_until_ = deadline_after(first->at, (last->at - first->at) / 16 + LeaseClock::duration(1));
    const auto moved =
        std::partition(later_.begin(), later_.end(), [this](const Node& node) { return node.at >= soon_until_; });
    std::for_each(moved, later_.end(), [this](const Node& node) { push_soon(node); });
    later_.erase(moved, later_.end());
  }

  void sink(std::size_t place, const Node node) noexcept {
    for (;;) {
      const std::size_t first = place * 4 + 1;
      if (first >= soon_.size()) break;
      std::size_t least = first;
      for (std::size_t i = first + 1; i < std::min(first + 4, soon_.size()); ++i) {
        if (soon_[i].at < soon_[least].at) least = i;
      }
      if (soon_[least].at >= node.at) break;
      soon_[place] = soon_[least];
      place = least;
    }
    soon_[place] = node;
  }

  std::vector<Node> soon_;   // empty only if there are none at all
  std::vector<Node> later_;  // from soon_until_ on
  Deadline soon_until_{};
};

}  // namespace v0
}  // namespace redlease
