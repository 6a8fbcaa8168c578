#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace redlease {
inline namespace v0 {

/// SHA-1 in lower-case hexadecimal (FIPS 180-4), at compile time, for the one thing that servers ask of it: naming
/// scripts.
constexpr std::array<char, 40> sha1_hex(std::string_view text) {
  constexpr std::array<std::uint32_t, 4> round_constant{0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xCA62C1D6};
  std::array<std::uint32_t, 5> hash{0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  const std::size_t padded = (text.size() + 8) / 64 * 64 + 64;
  const std::uint64_t bits = std::uint64_t{text.size()} * 8;
  const auto padded_byte = [&](std::size_t i) -> std::uint32_t {
    if (i < text.size()) return static_cast<unsigned char>(text[i]);
    if (i == text.size()) return 0x80;
    return i + 8 < padded ? 0 : static_cast<std::uint32_t>(bits >> (8 * (padded - 1 - i))) & 0xFF;
  };
  for (std::size_t block = 0; block < padded; block += 64) {
    std::array<std::uint32_t, 80> w{};
    for (std::size_t i = 0; i < 64; ++i) w[i / 4] = w[i / 4] << 8 | padded_byte(block + i);
    for (std::size_t i = 16; i < 80; ++i) w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    auto [a, b, c, d, e] = hash;
    for (std::size_t i = 0; i < 80; ++i) {
      const std::uint32_t mixed = i < 20   ? (b & c) | (~b & d)
                                  : i < 40 ? b ^ c ^ d
                                  : i < 60 ? (b & c) | (b & d) | (c & d)
                                           : b ^ c ^ d;
      const std::uint32_t next = std::rotl(a, 5) + mixed + e + round_constant[i / 20] + w[i];
      e = d;
      d = c;
      c = std::rotl(b, 30);
      b = a;
      a = next;
    }
    hash = {hash[0] + a, hash[1] + b, hash[2] + c, hash[3] + d, hash[4] + e};
  }
  std::array<char, 40> hex{};
  for (std::size_t i = 0; i < hex.size(); ++i) hex[i] = "0123456789abcdef"[hash[i / 8] >> (28 - 4 * (i % 8)) & 15];
  return hex;
}

/// A Lua script and the name by which a server that has seen it knows it. The source must live as long as the program.
class Script {
 public:
  consteval explicit Script(std::string_view source) : source_(source), sha_(sha1_hex(source)) {}
  constexpr std::string_view source() const noexcept { return source_; }
  constexpr std::string_view sha() const noexcept { return {sha_.data(), sha_.size()}; }

 private:
  std::string_view source_;
  std::array<char, 40> sha_;
};

}  // namespace v0
}  // namespace redlease
