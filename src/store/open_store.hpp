#pragma once
#include <memory>
#include <string_view>

#include "redlease/options.hpp"
#include "redlease/store/lease_store.hpp"

namespace redlease {
inline namespace v0 {

// The store that a URL names. Throws std::invalid_argument, without the password, if it names none.
std::shared_ptr<LeaseStore> open_store(std::string_view url, const ClientOptions&);

}  // namespace v0
}  // namespace redlease
