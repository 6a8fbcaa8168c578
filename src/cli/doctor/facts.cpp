// What a server tells of itself: INFO, CONFIG GET, TIME.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "cli/doctor/exam.hpp"

namespace redlease::cli::doctor {

std::map<std::string, std::string> info_fields(std::string_view text) {
  std::map<std::string, std::string> fields;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    // Modules come in lines that begin alike: "module:name=crdt,ver=…". The name is taken for the field.
    const auto colon = line.starts_with("module:") ? line.find(',') : line.find(':');
    if (colon != line.npos && !line.starts_with('#')) fields.emplace(line.substr(0, colon), line.substr(colon + 1));
  }
  return fields;
}

std::optional<std::int64_t> to_integer(const std::optional<std::string>& text) {
  std::int64_t value{};
  if (!text || text->empty()) return std::nullopt;
  const char* const end = text->data() + text->size();
  const auto [read, error] = std::from_chars(text->data(), end, value);
  return error == std::errc{} && read == end ? std::optional(value) : std::nullopt;
}

void Exam::learn_info() {
  if (!asked_info_) {
    asked_info_ = true;
    if (const auto reply = ask_for(Reply::Kind::text, {"INFO"})) {
      info_ = info_fields(reply->text);
      if (info_.empty()) set_trouble("INFO told nothing");
    }
    if (info_.empty()) no_info_ = trouble_;
  }
  if (no_info_) trouble_ = *no_info_;
}

std::optional<std::string> Exam::info(const std::string& field) {
  learn_info();
  if (const auto found = info_.find(field); found != info_.end()) return found->second;
  if (!no_info_) set_trouble(fmt::format("INFO does not tell {}", field));
  return std::nullopt;
}

std::optional<std::string> Exam::fact(const std::string& field, const std::string& setting) {
  if (auto told = info(field)) return told;
  if (auto set = config(setting)) return set;
  info(field);  // whose trouble is the one to tell: INFO tells more
  return std::nullopt;
}

std::optional<std::int64_t> Exam::number(const std::string& field) {
  const auto text = info(field);
  const auto value = to_integer(text);
  if (text && !value) set_trouble(fmt::format("INFO tells {}, but no number", field));
  return value;
}

std::optional<std::string> Exam::config(const std::string& name) {
  // Asked for no more: one entry in its ACL LOG is enough.
  if (no_config_) return trouble_ = *no_config_, std::nullopt;
  const auto reply = ask_for(Reply::Kind::array, {"CONFIG", "GET", name});
  if (!reply) return no_config_ = trouble_, std::nullopt;
  if (reply->elements == 2 && reply->items[0].text == name && reply->items[1].kind == Reply::Kind::text) {
    return reply->items[1].text;
  }
  set_trouble(fmt::format("CONFIG GET does not tell {}", name));
  return std::nullopt;
}

std::optional<TimeSample> Exam::time() {
  const auto wall = [] { return std::chrono::system_clock::now().time_since_epoch(); };
  const auto wall_before = wall();
  const Deadline before = LeaseClock::now();
  const auto reply = ask_for(Reply::Kind::array, {"TIME"});
  const Deadline after = LeaseClock::now();
  if (!reply) return std::nullopt;
  const auto part = [&](std::size_t i) {
    return reply->elements == 2 ? to_integer(reply->items[i].text) : std::nullopt;
  };
  const auto seconds = part(0), micros = part(1);
  constexpr std::int64_t far_future = 1LL << 40;  // what is beyond is no time
  if (!seconds || !micros || *seconds < 0 || *seconds > far_future || *micros < 0 || *micros >= 1'000'000) {
    set_trouble("TIME told no time");
    return std::nullopt;
  }
  const auto here = std::chrono::duration_cast<std::chrono::microseconds>((wall_before + wall()) / 2);
  return TimeSample{before, after, *seconds * 1'000'000 + *micros, here.count()};
}

std::optional<TimeSample> Exam::best_time(int of) {
  std::optional<TimeSample> best;
  for (int i = 0; i < of; ++i) {
    const auto sample = time();
    if (!sample) break;
    if (!best || sample->round_trip() < best->round_trip()) best = sample;
  }
  return best;
}

}  // namespace redlease::cli::doctor
