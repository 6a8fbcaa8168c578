#include "redlease/types.hpp"

#include <sys/random.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <span>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "fork.hpp"
#include "helper_names.hpp"

namespace redlease {
inline namespace v0 {

namespace {

void randomize(std::span<unsigned char> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::getrandom(bytes.data(), bytes.size(), 0);
    if (n >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    } else if (errno != EINTR) {
      throw std::system_error(errno, std::system_category(), "no owner token could be made: getrandom");
    }
  }
}

using ClientId = std::array<unsigned char, 8>;

struct Identity {
  std::uint64_t generation;
  ClientId id;
  const Identity* parents;  // kept, not freed: another thread may be looking at it
};

constinit std::atomic<const Identity*> identity{nullptr};

// No mutex and no function static: a fork in the middle would leave either locked in the child for ever.
const ClientId& client_id() {
  const std::uint64_t generation = fork_generation();
  const Identity* seen = identity.load(std::memory_order_acquire);
  if (seen != nullptr && seen->generation == generation) return seen->id;
  auto fresh = std::make_unique<Identity>(Identity{generation, {}, seen});
  randomize(fresh->id);
  if (identity.compare_exchange_strong(seen, fresh.get(), std::memory_order_acq_rel)) return fresh.release()->id;
  return seen->id;
}

char* put_hex(char* to, std::span<const unsigned char> bytes) noexcept {
  constexpr std::string_view digits = "0123456789abcdef";
  for (const unsigned char byte : bytes) {
    *to++ = digits[byte >> 4];
    *to++ = digits[byte & 15];
  }
  return to;
}

}  // namespace

LeaseKey::LeaseKey(std::string name, int) : name_(std::move(name)) {
  if (name_.empty()) throw std::invalid_argument("the name of a lease must not be empty");
  if (name_.size() > max_size) {
    throw std::invalid_argument("the name of a lease must have at most 512 bytes; this one has " +
                                std::to_string(name_.size()));
  }
  if (is_helper_name(name_)) {
    throw std::invalid_argument(
        "the name of a lease must not end in lease:meta, lease:queue or lease:seen, which are helper keys of other "
        "leases: " +
        quoted(name_));
  }
}

OwnerToken::OwnerToken(std::string value) : value_(std::move(value)) {
  if (value_.empty()) throw std::invalid_argument("an owner token must not be empty");
  if (value_.size() > max_size) {
    throw std::invalid_argument("an owner token must have at most 256 bytes; this one has " +
                                std::to_string(value_.size()));
  }
}

OwnerToken OwnerToken::generate() {
  std::array<unsigned char, 16> nonce;
  randomize(nonce);
  std::string value(2 * (sizeof(ClientId) + nonce.size()) + 1, '.');
  put_hex(put_hex(value.data(), client_id()) + 1, nonce);
  return OwnerToken(std::move(value));
}

std::string_view to_string(AcquireOutcome outcome) noexcept {
  switch (outcome) {
    case AcquireOutcome::acquired: return "acquired";
    case AcquireOutcome::busy: return "busy";
    case AcquireOutcome::unknown: return "unknown";
    case AcquireOutcome::unavailable: return "unavailable";
  }
  return "?";
}

std::string_view to_string(RenewOutcome outcome) noexcept {
  switch (outcome) {
    case RenewOutcome::renewed: return "renewed";
    case RenewOutcome::lost: return "lost";
    case RenewOutcome::unknown: return "unknown";
    case RenewOutcome::unavailable: return "unavailable";
  }
  return "?";
}

std::string_view to_string(ReleaseOutcome outcome) noexcept {
  switch (outcome) {
    case ReleaseOutcome::released: return "released";
    case ReleaseOutcome::not_held: return "not_held";
    case ReleaseOutcome::unknown: return "unknown";
    case ReleaseOutcome::unavailable: return "unavailable";
  }
  return "?";
}

std::string_view to_string(LossCause cause) noexcept {
  switch (cause) {
    case LossCause::deadline: return "deadline";
    case LossCause::gone: return "gone";
    case LossCause::taken: return "taken";
    case LossCause::max_hold: return "max_hold";
  }
  return "?";
}

}  // namespace v0
}  // namespace redlease
