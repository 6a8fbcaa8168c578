#pragma once
#include <initializer_list>
#include <string>
#include <string_view>

namespace redlease {
inline namespace v0 {

// The parts behind one another. A call of its own for texts that are seldom made: chains of + are inlined at each
// place.
[[gnu::cold]] std::string concat(std::initializer_list<std::string_view> parts);

}  // namespace v0
}  // namespace redlease
