#include "core.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "concat.hpp"
#include "helper_names.hpp"

namespace redlease {
inline namespace v0 {

namespace {

std::string* host_and_pid() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {"unknown-host"};
  auto* text = new std::string(host.data());
  for (char& c : *text) {
    if (static_cast<unsigned char>(c) <= ' ') c = '_';  // a space ends the holder's name on the server
  }
  return &text->append(":").append(std::to_string(::getpid()));
}

}  // namespace

Core::Core(std::shared_ptr<LeaseStore> s, const ClientOptions& options)
    : store(std::move(s)),
      observer(options.observer),
      clock(options.clock != nullptr ? *options.clock : Clock::real()),
      prefix(options.key_prefix),
      drift(options.drift),
      holder(&host_and_pid),
      keeper([this] { return new Keeper(store, observer, clock, prefix.size()); }) {}

Tenure::Tenure(const std::shared_ptr<Core>& c, const LeaseKey& k, const LeaseOptions& options)
    : core(c),
      key(k),
      ttl(static_cast<std::int32_t>(checked(options).ttl.count())),
      op_timeout(static_cast<std::int32_t>(op_timeout_of(options).count())) {
  std::string full = full_name(*c, k.str());
  if (full != k.str()) prefixed = std::make_shared<const std::string>(std::move(full));
}

Orphan Tenure::orphan(const OwnerToken& token, Deadline spent_by, std::string_view place) const {
  const Deadline now = LeaseClock::now();
  const Deadline from = spent_by == Deadline::max() ? now : std::max(now, spent_by);
  return {full_key(), token.str(), op_timeout, spent_by, deadline_after(from, ttl), std::string(place)};
}

AcquireRequest Wish::request(std::string_view token) const {
  return {full_key(), token, ttl, floor, core->holder.get(), label, op_timeout};
}

std::string full_name(const Core& core, std::string_view name) {
  std::string full = core.prefix;
  full += name;
  if (full.size() > LeaseKey::max_size) {
    throw std::invalid_argument(concat(
        {"redlease: prefix and name have ", std::to_string(full.size()), " bytes together; at most 512 are allowed"}));
  }
  if (is_helper_name(full)) {
    throw std::invalid_argument(
        concat({"redlease: prefix and name together end like a helper key (", quoted(full), ")"}));
  }
  return full;
}

}  // namespace v0
}  // namespace redlease
