#include "service/orphans.hpp"

#include <algorithm>
#include <utility>

namespace redlease {
inline namespace v0 {

std::optional<Orphan> Orphans::add(Orphan orphan, Deadline first) {
  std::optional<Orphan> oldest;
  if (all_.size() >= most) {
    oldest = std::move(all_.front().orphan);
    all_.pop_front();
  }
  next_over_ = std::min(next_over_, orphan.over);
  next_ = std::min(next_, first);
  all_.push_back({std::move(orphan), ++last_ticket_, first});
  return oldest;
}

void Orphans::forget(std::string_view token) noexcept {
  if (std::erase_if(all_, [&](const Entry& entry) { return entry.orphan.token == token; }) > 0) plan();
}

void Orphans::hurry(Deadline now) noexcept {
  for (Entry& entry : all_) {
    entry.next = std::min(entry.next, now);
    entry.orphan.spent_by = Deadline::min();
  }
  plan();
}

std::optional<Orphan> Orphans::saw_gone(std::uint64_t ticket, std::uint32_t number, bool released, Deadline now) {
  Entry* entry = find(ticket);
  if (entry == nullptr) return std::nullopt;
  const Deadline spent_by = entry->orphan.spent_by;
  const bool spent = entry->first_spent != 0 && number >= entry->first_spent;
  if (spent || (released && spent_by == Deadline::max())) return remove(*entry);
  // It may have overtaken what it is to undo, or undone one of several.
  const Deadline again = deadline_after(now, pause(*entry));
  entry->next = spent_by == Deadline::max() ? again : std::max(again, spent_by);
  plan();
  return std::nullopt;
}

void Orphans::saw_failed(std::uint64_t ticket, Deadline now) noexcept {
  Entry* entry = find(ticket);
  if (entry == nullptr) return;
  entry->next = deadline_after(now, pause(*entry));
  plan();
}

void Orphans::saw_unsent(std::uint64_t ticket, Deadline now) noexcept {
  Entry* entry = find(ticket);
  if (entry == nullptr) return;
  entry->next = now;
  plan();
}

std::vector<Orphan> Orphans::over(Deadline now) {
  std::vector<Orphan> over;
  if (now < next_over_) return over;
  for (std::size_t i = all_.size(); i-- > 0;) {
    if (all_[i].orphan.over <= now) over.push_back(remove(all_[i]));
  }
  plan();  // also if it was early
  return over;
}

LeaseClock::duration Orphans::pause(const Entry& entry) noexcept {
  return std::min<LeaseClock::duration>(first_pause * (1 << std::min(entry.tries, 8U)) / 2, longest_pause);
}

Orphans::Entry* Orphans::find(std::uint64_t ticket) noexcept {
  const auto found = std::ranges::lower_bound(all_, ticket, {}, &Entry::ticket);
  return found == all_.end() || found->ticket != ticket ? nullptr : &*found;
}

Orphan Orphans::remove(Entry& entry) {
  Orphan orphan = std::move(entry.orphan);
  all_.erase(std::ranges::lower_bound(all_, entry.ticket, {}, &Entry::ticket));
  plan();
  return orphan;
}

void Orphans::plan() noexcept {
  next_ = next_over_ = Deadline::max();
  for (const Entry& entry : all_) {
    next_ = std::min(next_, entry.next);
    next_over_ = std::min(next_over_, entry.orphan.over);
  }
}

}  // namespace v0
}  // namespace redlease
