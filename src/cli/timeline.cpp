#include "cli/timeline.hpp"

#include <algorithm>
#include <tuple>

#include "cli/changes.hpp"

namespace redlease::cli {
namespace {

// An arrival is told as "so long ago", which the way here blurs.
constexpr Millis same_arrival{100};

std::string who_holds(const LeaseInfo& info) {
  if (info.holder.empty()) return "another, not of this library";
  return info.label.empty() ? info.holder : info.holder + " " + info.label;
}

Millis since(Millis at, const LeaseInfo& info) { return info.held_for ? at - *info.held_for : at; }

}  // namespace

// That the holder of before no longer holds the key was seen at `at`.
void TimelineBuilder::end_holder(Seen& seen, Millis at, const LeaseInfo& now) {
  auto& [who, span] = *seen.holder;
  span.to = *seen.last;
  if (now.held_for) span.to = std::clamp(since(at, now), *seen.last, at);
  if (seen.info.remaining && *seen.last + *seen.info.remaining <= (now.held_for ? span.to : at)) {
    span.to = *seen.last + *seen.info.remaining;
    span.expired = true;
  }
  span.to = std::max(span.to, span.from);
  seen.free_from = span.to;
  seen.over.push_back(*std::move(seen.holder));
  seen.holder.reset();
}

// Keeps those who still wait, in the order of the queue, and adds who is new there.
void TimelineBuilder::end_waits(Seen& seen, Millis at, const LeaseInfo& now) {
  std::vector<Wait> left;
  for (std::size_t i = 0; i < now.queue.size() && i < now.queued_for.size(); ++i) {
    const Millis arrival = at - now.queued_for[i];
    const auto before = std::ranges::find_if(seen.waits, [&](const Wait& wait) {
      return wait.who == now.queue[i] && std::chrono::abs(wait.arrival - arrival) <= same_arrival;
    });
    if (before != seen.waits.end()) {
      left.push_back(std::move(*before));
      seen.waits.erase(before);
    } else {
      Wait wait{now.queue[i], arrival, {.held = false, .from = std::max(arrival, Millis(0))}};
      wait.span.began_before = arrival < Millis(0);
      left.push_back(std::move(wait));
    }
  }
  for (Wait& wait : seen.waits) {
    const bool served = seen.holder && seen.holder->first == wait.who && seen.holder->second.from >= wait.span.from;
    wait.span.to = std::max(wait.span.from, served ? seen.holder->second.from : *seen.last);
    seen.over.emplace_back(std::move(wait.who), wait.span);
  }
  seen.waits = std::move(left);
}

void TimelineBuilder::see(const std::string& key, Millis at, const std::optional<LeaseInfo>& look) {
  Seen& seen = keys_[key];
  if (!look) {
    if (!seen.is_silent) seen.silent.emplace_back(seen.last.value_or(Millis(0)), at);
    seen.is_silent = true;
    seen.silent.back().second = at;
    return;
  }
  if (seen.is_silent) seen.silent.back().second = at;
  seen.is_silent = false;
  const LeaseInfo& now = *look;
  if (seen.holder && !is_same_grant(seen.info, now)) end_holder(seen, at, now);
  if (seen.last && now.fence != seen.info.fence && !now.held_for) seen.unseen.push_back(at);
  if (now.held && !seen.holder) {
    Span span{.held = true};
    span.from = std::max({since(at, now), seen.free_from, Millis(0)});
    span.began_before = since(at, now) < Millis(0) || (!seen.last && !now.held_for);
    if (now.held_for) span.fence = now.fence;
    seen.holder.emplace(who_holds(now), span);
  }
  end_waits(seen, at, now);
  seen.last = at;
  seen.info = now;
}

KeyTimeline TimelineBuilder::timeline_of(const std::string& key, Seen seen, Millis length) {
  const auto goes_on = [&](Span span) {
    span.to = seen.is_silent ? seen.last.value_or(Millis(0)) : length;
    span.to = std::max(span.to, span.from);
    span.goes_on = true;
    return span;
  };
  if (seen.holder) seen.over.emplace_back(seen.holder->first, goes_on(seen.holder->second));
  for (const Wait& wait : seen.waits) seen.over.emplace_back(wait.who, goes_on(wait.span));
  if (seen.is_silent) seen.silent.back().second = length;

  std::ranges::stable_sort(seen.over, {}, [](const auto& one) {
    return std::tuple(one.second.from, one.second.to, one.first, one.second.held);
  });
  KeyTimeline out{key, {}, std::move(seen.unseen), std::move(seen.silent)};
  for (const auto& one : seen.over) {
    const std::string& who = one.first;
    const Span& span = one.second;
    auto lane = std::ranges::find_if(
        out.lanes, [&](const Lane& other) { return other.who == who && other.spans.back().to <= span.from; });
    if (lane == out.lanes.end()) lane = out.lanes.insert(lane, Lane{who, {}});
    lane->spans.push_back(span);
  }
  return out;
}

Timeline TimelineBuilder::finish(Millis length) const {
  Timeline out{length, {}};
  for (const auto& [key, seen] : keys_) out.keys.push_back(timeline_of(key, seen, length));
  return out;
}

}  // namespace redlease::cli
