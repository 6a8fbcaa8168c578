// What lies under the prefix: keys that never expire, and fences that the clock has yet to reach.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "cli/doctor/exam.hpp"
#include "cli/doctor/finding.hpp"
#include "cli/duration.hpp"
#include "cli/glob.hpp"
#include "store/key_names.hpp"

namespace redlease::cli::doctor {
namespace {

constexpr std::size_t most_keys = 100'000;
constexpr Millis longest{5'000};
constexpr std::size_t batch = 500;

// For a shell. Names come from whoever may write to the server.
std::string shell_word(std::string_view word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// Looked for once.
std::optional<Exam::Keys> scan(Exam& exam) {
  if (exam.keys) return exam.keys;
  Exam::Keys scanned;
  std::unordered_set<std::string> seen;  // SCAN may tell a key twice
  const std::string pattern = glob_escaped(exam.context().prefix()) + "*";
  const Deadline end = deadline_in(longest);
  std::string cursor = "0";
  do {
    auto reply =
        exam.ask_for(Reply::Kind::array, {"SCAN", cursor, "MATCH", pattern, "COUNT", "1000", "TYPE", "string"});
    if (!reply) return std::nullopt;
    if (reply->elements != 2 || reply->items[0].kind != Reply::Kind::text ||
        reply->items[1].kind != Reply::Kind::array) {
      return exam.set_trouble("SCAN got an answer that is none"), std::nullopt;
    }
    cursor = reply->items[0].text;
    for (std::size_t i = 0; i < reply->items[1].elements; ++i) seen.insert(std::move(reply->items[1].items[i].text));
  } while (cursor != "0" && seen.size() < most_keys && LeaseClock::now() < end && !exam.stop().stop_requested());
  scanned.complete = cursor == "0";
  scanned.names.assign(seen.begin(), seen.end());
  std::sort(scanned.names.begin(), scanned.names.end());
  return exam.keys = std::move(scanned);
}

// `command key` for each key, in few round trips.
std::optional<std::vector<Reply>> ask_each(Exam& exam, const std::string& command,
                                           const std::vector<std::string>& keys) {
  std::vector<Reply> replies;
  for (std::size_t i = 0; i < keys.size(); i += batch) {
    std::vector<std::vector<std::string>> commands;
    for (std::size_t k = i; k < std::min(i + batch, keys.size()); ++k) commands.push_back({command, keys[k]});
    auto some = exam.ask_all(commands);
    if (!some) return std::nullopt;
    std::move(some->begin(), some->end(), std::back_inserter(replies));
  }
  return replies;
}

std::string some_of(const std::vector<std::string>& keys) {
  const std::size_t shown = std::min<std::size_t>(keys.size(), 5);
  return fmt::format("{}{}", fmt::join(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                     keys.size() > shown ? ", …" : "");
}

constexpr std::string_view cut_short = "none among those that were looked at; there are too many to look at all";

Verdict expiry(Exam& exam) {
  auto scanned = scan(exam);
  if (!scanned) return exam.unknown();
  const bool all = !exam.context().prefix().empty();
  // Without a prefix a key that never expires may be anybody's data; one that has been leased is a lease.
  const std::unordered_set<std::string> names(scanned->names.begin(), scanned->names.end());
  std::erase_if(scanned->names, [&](const std::string& key) {
    return is_helper_name(key) || (!all && !names.contains(helper_name(key, meta_suffix)));
  });
  const auto left = ask_each(exam, "PTTL", scanned->names);
  if (!left) return exam.unknown();
  std::vector<std::string> endless;
  for (std::size_t i = 0; i < left->size(); ++i) {
    const Reply& reply = (*left)[i];
    if (reply.kind != Reply::Kind::integer) return unknown(fmt::format("PTTL was refused ({})", reply.first_word()));
    if (reply.integer == -1) endless.push_back(scanned->names[i]);
  }
  const std::string& prefix = exam.context().prefix();
  if (endless.empty() && !scanned->complete) return unknown(std::string(cut_short));
  if (endless.empty()) {
    return ok(
        all ? fmt::format("none of {} under the prefix", scanned->names.size())
            : fmt::format("none of {} leases; without --prefix nothing else is looked at", scanned->names.size()));
  }
  return warn(
      fmt::format("{}: {}", endless.size(), some_of(endless)),
      "a lease without an expiry is held for ever: whoever took it has died or will, and nobody gets it after "
      "that",
      fmt::format("look at it with redlease show, then `redlease break {}{} --yes`, and so for the others; or keep "
                  "what is no lease under another prefix",
                  prefix.empty() ? "" : "--prefix " + shell_word(prefix) + " ",
                  shell_word(endless.front().substr(prefix.size()))));
}

Verdict fences(Exam& exam) {
  auto scanned = scan(exam);
  const auto now = exam.best_time(3);
  if (!scanned || !now) return exam.unknown();
  std::erase_if(scanned->names, [](const std::string& key) { return !key.ends_with(meta_suffix); });
  const auto metas = ask_each(exam, "GET", scanned->names);
  if (!metas) return exam.unknown();
  // As the scripts count: seconds * 2^20 + microseconds. One second for what passes meanwhile.
  const std::int64_t clock = (now->server / 1'000'000 + 1) * (1 << 20) + now->server % 1'000'000;
  std::int64_t highest = 0;
  std::vector<std::string> ahead;
  for (std::size_t i = 0; i < metas->size(); ++i) {
    const Reply& reply = (*metas)[i];
    if (reply.is_error()) return unknown(fmt::format("GET was refused ({})", reply.first_word()));
    const auto fence = to_integer(reply.text.substr(0, reply.text.find(' ')));
    if (!fence || *fence <= clock) continue;
    ahead.push_back(scanned->names[i].substr(0, scanned->names[i].rfind(meta_suffix)));
    highest = std::max(highest, *fence);
  }
  if (ahead.empty()) {
    return scanned->complete ? ok(fmt::format("none of {}", metas->size())) : unknown(std::string(cut_short));
  }
  const Millis by{((highest - clock) / (1 << 20) + 1) * 1'000};
  return warn(
      fmt::format("{}, by up to {}: {}", ahead.size(), show(by), some_of(ahead)),
      "the server's clock was set back, or a fence_floor was far ahead. Fences go on growing, by one; but should "
      "the server lose its data before the clock is there, they fall back and the resource refuses new holders",
      fmt::format("wait {} with the clock right, and keep the data till then (durability.persistence); after a "
                  "loss acquire once with --fence-floor",
                  show(by)));
}

}  // namespace

std::span<const Check> key_checks() {
  static constexpr std::array<Check, 2> checks{{{"keys.expiry", expiry}, {"keys.fences", fences}}};
  return checks;
}

}  // namespace redlease::cli::doctor
