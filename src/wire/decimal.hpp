#pragma once
// Numbers as the wire has them: text.
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace redlease {
inline namespace v0 {

// A number as text, without an allocation.
class Decimal {
 public:
  explicit Decimal(std::int64_t value) noexcept
      : size_(static_cast<std::size_t>(std::to_chars(text_.begin(), text_.end(), value).ptr - text_.begin())) {}
  operator std::string_view() const noexcept { return {text_.data(), size_}; }

 private:
  std::array<char, 24> text_{};
  std::size_t size_;
};

// 0 for what is no number.
inline std::int64_t to_number(std::string_view digits) noexcept {
  std::int64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

// The same of a score, which a server may write with an exponent.
inline double to_real(std::string_view digits) noexcept {
  double value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

}  // namespace v0
}  // namespace redlease
