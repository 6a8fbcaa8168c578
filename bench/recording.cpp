#include "recording.hpp"

#include <redlease/wire/resp.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace bench {

namespace {

constexpr std::string_view marker = "redlease:bench:end";

unsigned nibble(char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); }

// 1700000000.123456 [0 127.0.0.1:5000] "SET" "k" "\x00\n" -> the words; none for what a script did.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  const auto source_end = line.find("] ");
  if (source_end == std::string_view::npos || line.substr(0, source_end).ends_with(" lua")) return words;
  for (std::size_t i = source_end + 2; i < line.size(); ++i) {
    if (line[i] != '"') continue;
    std::string word;
    for (++i; i < line.size() && line[i] != '"'; ++i) {
      if (line[i] != '\\') {
        word += line[i];
        continue;
      }
      switch (line[++i]) {
        case 'n': word += '\n'; break;
        case 'r': word += '\r'; break;
        case 't': word += '\t'; break;
        case 'a': word += '\a'; break;
        case 'b': word += '\b'; break;
        case 'x':
          word += static_cast<char>(nibble(line[i + 1]) << 4 | nibble(line[i + 2]));
          i += 2;
          break;
        default: word += line[i];
      }
    }
    words.push_back(std::move(word));
  }
  return words;
}

// EVALSHA sha 4 key meta queue seen token ttl not-after floor holder
void move_on_not_after(std::vector<std::string>& words) {
  if (words.size() != 12 || words[0] != "EVALSHA" || words[2] != "4" || words[9] == "0") return;
  words[9] = std::to_string(std::stoll(words[9]) + 3'600'000'000);
}

std::string frame_of(const std::vector<std::string>& words) {
  std::string frame;
  const std::vector<std::string_view> views(words.begin(), words.end());
  redlease::append_command(frame, views);
  return frame;
}

}  // namespace

Recording Recording::of(const std::string& url, int cycles, const std::function<void()>& cycle) {
  cycle();  // connects and makes the scripts known
  Raw control(url);
  Raw monitor(url);
  monitor.call({"MONITOR"});
  for (int i = 0; i < cycles; ++i) cycle();
  control.call({"ECHO", marker});

  std::vector<std::string> frames;
  for (;;) {
    const RawReply line = monitor.receive();
    std::vector<std::string> words = words_of({line->str, static_cast<std::size_t>(line->len)});
    if (words.empty()) continue;
    if (words.back() == marker) break;
    move_on_not_after(words);
    frames.push_back(frame_of(words));
  }
  const auto count = static_cast<std::size_t>(cycles);
  if (frames.empty() || frames.size() % count != 0) {
    throw std::runtime_error("recorded " + std::to_string(frames.size()) + " commands in " + std::to_string(cycles) +
                             " cycles; is somebody else using this server?");
  }
  Recording recording;
  const std::size_t each = frames.size() / count;
  for (std::size_t i = 0; i < frames.size(); i += each) {
    const auto from = frames.begin() + static_cast<std::ptrdiff_t>(i);
    recording.cycles_.emplace_back(from, from + static_cast<std::ptrdiff_t>(each));
  }
  return recording;
}

const std::vector<std::string>& Recording::next() noexcept {
  const auto& cycle = cycles_[at_];
  at_ = (at_ + 1) % cycles_.size();
  return cycle;
}

void Recording::replay(Raw& raw) {
  for (const std::string& frame : next()) {
    raw.send(frame);
    const RawReply reply = raw.receive();
    // A request that is refused as too late costs the server less than one that is carried out, and would be no floor.
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 && reply->element[0]->integer < 0) {
      throw std::runtime_error("what was recorded is refused when it is sent again");
    }
  }
}

void Recording::replay_at_once(Raw& raw, int cycles) {
  for (int i = 0; i < cycles; ++i) {
    for (const std::string& frame : next()) raw.send(frame);
  }
  const auto replies = static_cast<std::size_t>(cycles) * commands_per_cycle();
  for (std::size_t i = 0; i < replies; ++i) raw.receive();
}

}  // namespace bench
