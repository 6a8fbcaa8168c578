#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "redlease/clock.hpp"
#include "redlease/export.hpp"

namespace redlease {
inline namespace v0 {

/// How a waiter asks for the lease.
enum class Ask : std::uint8_t {
  once,     ///< as a try does: if another holds it, nothing of the asker stays there
  queue,    ///< takes or keeps its place in the queue, to be woken through its inbox
  reserve,  ///< the same without an inbox: its turn is kept for it until it asks again
  last,     ///< and leaves the queue if another holds it
};

/// When a waiter does what: pure, no I/O, no threads, no clock, the randomness from its seed. docs/proof.md has its
/// rules.
///
/// Usage: next(now) says what to do; one of the saw_ functions says what came of it. It asks once, in case the lease is
/// free. If another holds it, it gets an inbox and asks for a place in the queue; then it listens, and asks again now
/// and then: as a sign of life, and in case that a wake-up was lost. A store without a queue is asked again and again.
///
/// The last question is put no later than 20 ms before the end, so that its answer is known by then and not in doubt.
class REDLEASE_EXPORT WaitPlan {
 public:
  static constexpr Millis first_interval{10};     ///< grows by 1.6 each time; 25 % of jitter either way
  static constexpr Millis longest_interval{250};  ///< jitter included

  struct Terms {
    Deadline start{};
    Deadline give_up{};  ///< may be Deadline::max()
    Millis ttl{};
    LeaseClock::duration margin{};  ///< how much earlier than the ttl the holder counts a lease as over
    double drift{0.01};             ///< by how much the clocks of client and server may differ in rate
    bool queue{true};               ///< whether the store has one
    bool inbox{false};              ///< whether there is one already
    std::uint64_t seed{};           ///< two plans with different seeds do not beat together
  };

  enum class Step : std::uint8_t { ask, subscribe, listen, give_up };
  struct Next {
    Step step{};
    Ask how{};         ///< of ask
    Deadline until{};  ///< of listen
  };

  /// A place in the queue.
  struct Place {
    std::optional<Millis> remaining{};  ///< of the holder's ttl; none: it has none
    std::size_t ahead{};                ///< how many wait in front
    bool foreign{false};                ///< the holder is none of ours: nobody will wake us
    bool heard{true};                   ///< the store can reach our inbox
    Deadline sent{};                    ///< read before the question left
    std::int64_t server_time{};         ///< when the store said so, in microseconds
  };

  explicit WaitPlan(const Terms&) noexcept;

  Next next(Deadline now) const noexcept;

  /// Answers to a question. Another holds it, and there is no place in a queue; `remaining` of its ttl if it has one. A
  /// remaining of 0 or less means: look again soon.
  void saw_busy(Deadline now, std::optional<Millis> remaining) noexcept;
  void saw_queued(Deadline now, const Place&) noexcept;
  /// The server could not be asked, or nobody knows what it did.
  void saw_trouble(Deadline now) noexcept;

  /// The inbox: it is there; it was lost or could not be had; there is to be none. One that cannot be had for a
  /// heartbeat is done without, and tried for again only every six.
  void saw_inbox(Deadline now) noexcept;
  void saw_no_inbox(Deadline now) noexcept;
  void saw_inbox_refused(Deadline now) noexcept;

  /// Something says that the lease is kept for us: ask at once.
  void saw_hint(Deadline now) noexcept;
  /// A grant for this waiter, made at `server_time` (microseconds), was heard. Since when the lease counts as ours, or
  /// nothing: it is not to be believed, or too little of it is left; then the next step is to ask.
  ///
  /// Let the latest "queued" have said S in answer to a question sent at L. Then the grant was made no earlier than L
  /// plus (server_time - S), less the drift; a grant from before S is of a former turn.
  std::optional<Deadline> saw_grant(Deadline now, std::int64_t server_time) noexcept;

  /// What the store keeps of this waiter goes stale this long after it last asked.
  Millis lifetime() const noexcept { return 3 * heartbeat_; }
  Millis heartbeat() const noexcept { return heartbeat_; }
  /// Whether the store may have a place for this waiter, so that it has to leave.
  bool in_queue() const noexcept { return in_queue_; }

 private:
  Ask how() const noexcept;
  bool near_end(Deadline now) const noexcept;
  LeaseClock::duration jitter(LeaseClock::duration below) noexcept;
  LeaseClock::duration grown() noexcept;
  Deadline latest() const noexcept;

  enum class Inbox : std::uint8_t { none, up, refused };

  const Terms terms_;
  const Millis heartbeat_;
  std::uint64_t random_;
  Deadline ask_at_;
  Deadline subscribe_at_{Deadline::max()};
  std::optional<Deadline> no_inbox_since_{};  // it was tried for and not had
  struct Told {
    Deadline sent;
    std::int64_t server_time;
  };
  std::optional<Told> told_{};  // by the latest "queued"
  LeaseClock::duration interval_{first_interval};
  Inbox inbox_;
  std::uint8_t unheard_{0};
  bool contended_{false}, in_queue_{false}, asked_{false}, had_inbox_{false}, over_{false};
};

}  // namespace v0
}  // namespace redlease
