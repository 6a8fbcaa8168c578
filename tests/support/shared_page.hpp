#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace redlease {
inline namespace v0 {

/// Memory shared with the children forked after it was made, which tells whether two were ever inside a critical
/// section at once. A process that dies inside has left: the kernel sees to that.
class SharedPage {
 public:
  SharedPage();
  ~SharedPage();
  SharedPage(const SharedPage&) = delete;
  SharedPage& operator=(const SharedPage&) = delete;

  /// Whether nobody else is inside; if somebody is, that is a violation. Call leave() on the same thread either way.
  bool enter();
  void leave();

  std::uint64_t entries() const;
  std::uint64_t violations() const;
  std::uint64_t died_inside() const;  ///< noticed by the next to enter

  static constexpr std::size_t counters = 64;
  /// For whatever a test wants to count; 0 at first.
  std::atomic<std::int64_t>& counter(std::size_t index = 0);

 private:
  struct Content;
  Content* content_;
};

}  // namespace v0
}  // namespace redlease
