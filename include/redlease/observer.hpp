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
  /// released, release_failed, lost, abandoned: how long it was ours; 0 if it never was (adopted and not renewed).
  std::chrono::nanoseconds held{};
  /// renewed: how far before the old deadline; 0 if there was none, since that made an adopted lease ours.
  std::chrono::nanoseconds slack{};
  unsigned attempts{};  ///< waited: how many tries it took
  const Error* error{nullptr};
  /// lost: how. Of a release: `deadline` or `max_hold` if lost() came before it, `gone` or `taken` if it found it so.
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
  virtual void waiting(const Event&) noexcept {}  ///< an acquire() begins; always paired with waited()
  virtual void waited(const Event&) noexcept {}   ///< it is over, however it ended
  virtual void renewed(const Event&) noexcept {}
  virtual void renew_failed(const Event&) noexcept {}
  virtual void lost(const Event&) noexcept {}
  virtual void released(const Event&) noexcept {}
  virtual void release_failed(const Event&) noexcept {}
  virtual void abandoned(const Event&) noexcept {}  ///< a held lease was forgotten on purpose
  virtual void orphan_withdrawn(const Event&) noexcept {
  }  ///< what a lost call may have left is gone; with an error: given up
  virtual void connected(const Event&) noexcept {}
  /// Waiters at this server can not be woken (the error says why), so their turns are kept until they ask; told once.
  virtual void unheard(const Event&) noexcept {}
  virtual void stalled(const Event&) noexcept {}  ///< this process did not run for `elapsed`
};

}  // namespace v0
}  // namespace redlease
