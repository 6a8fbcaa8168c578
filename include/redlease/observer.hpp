#pragma once
#include <chrono>
#include <optional>
#include <string_view>

#include "redlease/error.hpp"
#include "redlease/export.hpp"
#include "redlease/types.hpp"

namespace redlease {
inline namespace v0 {

/// What every observer method receives; unused fields are empty. Views and pointers live as long as the call.
struct Event {
  std::string_view key{}, server{};
  std::chrono::nanoseconds elapsed{};  ///< of the call or the wait
  std::chrono::nanoseconds held{};     ///< released, lost: how long it was ours
  std::chrono::nanoseconds slack{};    ///< renewed: how far before the old deadline
  const Error* error{nullptr};
  std::optional<LossCause> loss{};
};

/// Sees what happens, instead of a log. Called with no lock held, from any thread, and before the call that it tells of
/// returns: be quick. Must not throw.
class REDLEASE_EXPORT Observer {
 public:
  virtual ~Observer() = default;
  virtual void acquired(const Event&) noexcept {}
  virtual void busy(const Event&) noexcept {}
  virtual void unknown(const Event&) noexcept {}
  virtual void unavailable(const Event&) noexcept {}
  virtual void waited(const Event&) noexcept {}  ///< an acquire with a wait is over, however it ended
  virtual void renewed(const Event&) noexcept {}
  virtual void renew_failed(const Event&) noexcept {}
  virtual void lost(const Event&) noexcept {}
  virtual void released(const Event&) noexcept {}
  virtual void release_failed(const Event&) noexcept {}
  virtual void orphan_withdrawn(const Event&) noexcept {}  ///< not called yet
  virtual void connected(const Event&) noexcept {}
  virtual void stalled(const Event&) noexcept {}  ///< this process did not run for `elapsed`; not called yet
};

}  // namespace v0
}  // namespace redlease
