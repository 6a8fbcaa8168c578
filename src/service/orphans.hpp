#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redlease/clock.hpp"
#include "redlease/types.hpp"

namespace redlease {
inline namespace v0 {

// A token that may stand on the server although nobody wants it any more.
struct Orphan {
  std::string key, token;  // key: with the prefix
  Millis op_timeout{};
  // What may still bring it there is refused from then on; a withdrawal sent before that is not the last word.
  Deadline spent_by{Deadline::min()};
  Deadline over{};      // its ttl has surely passed
  std::string place{};  // see Doubt::place
};

// When to try to withdraw which orphan: at once, again with growing pauses, and once more when it is spent, until the
// server has answered or the ttl has passed. Pure but for its memory; LeaseClock time.
class Orphans {
 public:
  static constexpr std::size_t most = 1'024;
  static constexpr Millis first_pause{50}, longest_pause{5'000};

  // Takes one in, to be withdrawn from `first` on. If there are too many, the oldest is handed back: nobody takes care
  // of it any more.
  std::optional<Orphan> add(Orphan, Deadline first);
  // Somebody else takes care of it.
  void forget(std::string_view token) noexcept;

  bool empty() const noexcept { return all_.empty(); }
  std::size_t size() const noexcept { return all_.size(); }
  // When there is one to be sent next, and when the first ttl will have passed; max: never. Early, if that one
  // was handed back.
  Deadline next() const noexcept { return next_; }
  Deadline next_over() const noexcept { return next_over_; }
  // Every one is due, and the first answer is the last word: its Client ends. What went behind the request in order is
  // on its way in any case.
  void hurry(Deadline now) noexcept;

  // For each that is due, send(ticket, orphan, number of the try), which says whether it took it.
  template <class Send>
  void send_due(Deadline now, Send&& send) {
    if (now < next_) return;
    for (Entry& entry : all_) {
      if (entry.next > now) continue;
      if (!send(entry.ticket, entry.orphan, entry.tries + 1)) break;
      ++entry.tries;
      if (entry.first_spent == 0 && now >= entry.orphan.spent_by) entry.first_spent = entry.tries;
      entry.next = deadline_after(now, entry.orphan.op_timeout + pause(entry));
    }
    plan();
  }

  // The server has answered try `number`: it is gone. The orphan, if that was the last word.
  std::optional<Orphan> saw_gone(std::uint64_t ticket, std::uint32_t number, bool released, Deadline now);
  void saw_failed(std::uint64_t ticket, Deadline now) noexcept;
  // It was not carried out, and may be sent again at once.
  void saw_unsent(std::uint64_t ticket, Deadline now) noexcept;
  // Those whose ttl has passed.
  std::vector<Orphan> over(Deadline now);

 private:
  struct Entry {
    Orphan orphan;
    std::uint64_t ticket;
    Deadline next;
    std::uint32_t tries{0}, first_spent{0};  // first_spent: the first try sent when it was spent
  };
  static LeaseClock::duration pause(const Entry&) noexcept;
  Entry* find(std::uint64_t ticket) noexcept;
  Orphan remove(Entry&);
  void plan() noexcept;

  std::deque<Entry> all_;  // by ticket; thousands may come in one round
  Deadline next_{Deadline::max()}, next_over_{Deadline::max()};
  std::uint64_t last_ticket_{0};
};

}  // namespace v0
}  // namespace redlease
