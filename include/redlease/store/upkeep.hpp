#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "redlease/clock.hpp"
#include "redlease/error.hpp"
#include "redlease/export.hpp"
#include "redlease/types.hpp"

namespace redlease {
inline namespace v0 {

class LeaseStore;

/// A store's way of serving many leases at once from the background: everything that is due goes out together, and each
/// is answered for itself. Used by one thread; wake() by any. Nothing here waits for a server but flush(), within its
/// limits, and wait().
class REDLEASE_EXPORT Upkeep {
 public:
  enum class Verb : std::uint8_t { renew, release };

  struct Task {
    Verb verb{};
    std::string_view key{}, token{};  ///< live as long as the call
    std::string_view place{};         ///< of release: see Doubt::place
    Millis ttl{};
    LeaseClock::duration op_timeout{};
    std::uint64_t ticket{};  ///< comes back with the answer, as does `number`
    std::uint32_t number{};
  };

  enum class Said : std::uint8_t {
    done,         ///< renewed, or released
    not_ours,     ///< `cause` says how
    late,         ///< no answer within op_timeout; there may be one yet
    unknown,      ///< it may have been carried out, and there will be no answer
    unavailable,  ///< it was not carried out
    again,        ///< it was not carried out, and may be sent again at once
  };

  struct Answer {
    std::uint64_t ticket{};
    std::uint32_t number{};
    Said said{};
    LossCause cause{};
    Deadline sent{};  ///< of done: read, by the store's clock, before the request's first byte left
    std::shared_ptr<const Error> error{};  ///< of late, unknown and unavailable
  };

  struct News {
    std::vector<Answer> answers;
    std::optional<Error> no_connection;  ///< an attempt to connect failed
  };

  virtual ~Upkeep() = default;

  /// Whether a task may be added. If there is no connection, begins to make one, which may take `limit`, or cuts short
  /// one that has taken so long; its end, either way, ends a wait.
  virtual bool ready(LeaseClock::duration limit) = 0;
  /// Takes a task in; sends nothing yet.
  virtual void add(const Task&) = 0;
  /// Sends what was added.
  virtual void flush(const Limits&) = 0;
  /// Until there is news, the time has come, or wake() was called.
  virtual void wait(Deadline until, News&) = 0;
  /// Ends the wait, or the next one if there is none. From any thread.
  virtual void wake() noexcept = 0;
};

/// For stores that answer at once: calls renew and release for each task in flush().
REDLEASE_EXPORT std::unique_ptr<Upkeep> plain_upkeep(LeaseStore&);

}  // namespace v0
}  // namespace redlease
