#include "history.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "store/key_names.hpp"
#include "support/raw_reply.hpp"

namespace redlease {
inline namespace v0 {
namespace {

class Judge {
 public:
  Judge(const std::string& key, const std::string& resource)
      : key_(key), meta_(helper_name(key, meta_suffix)), queue_(helper_name(key, queue_suffix)), resource_(resource) {}

  void see(const AofCommand& command) {
    ++at_;
    const std::string& verb = command.at(0);
    if (verb == "MULTI" || verb == "EXEC") {
      announced_.reset();
      popped_.clear();
    }
    if (command.size() < 2) return;
    const std::string& name = command[1];
    if (name == meta_ && verb == "SET") return fence(command);
    if (name == queue_) return queue(command);
    if (name == resource_ && verb == "HSET") return write(command);
    if (name != key_) return;
    if (verb == "SET") return grant(command);
    if (verb == "PEXPIREAT") return renewal(std::stoll(command.at(2)));
    if (verb == "DEL" || verb == "UNLINK") {
      ++history_.removals;
      holder_.reset();
      return;
    }
    flaw("the lease was changed by " + verb);
  }

  History result() && { return std::move(history_); }

 private:
  void flaw(const std::string& what) {
    history_.flaws.push_back("command " + std::to_string(at_) + " of the history: " + what);
  }

  void fence(const AofCommand& command) {
    std::istringstream words(command.at(2));
    std::uint64_t number = 0;
    std::string token;
    words >> number >> token;
    if (number <= last_fence_) {
      flaw("fence " + std::to_string(number) + " does not grow: " + std::to_string(last_fence_) + " was before it");
    }
    last_fence_ = number;
    announced_ = token;
  }

  // Members begin with the waiter's token.
  void queue(const AofCommand& command) {
    const std::string& verb = command[0];
    if (verb == "ZADD") {
      const bool only_new = command.at(2) == "NX";
      const std::string& member = command.back();
      if (!only_new || !queue_of_.contains(member)) queue_of_[member] = std::stod(command.at(only_new ? 3 : 2));
    } else if (verb == "ZREM") {
      for (std::size_t i = 2; i < command.size(); ++i) queue_of_.erase(command[i]);
    } else if (verb == "ZPOPMIN") {
      const auto first = std::min_element(queue_of_.begin(), queue_of_.end(), [](const auto& a, const auto& b) {
        return std::tie(a.second, a.first) < std::tie(b.second, b.first);
      });
      if (first == queue_of_.end()) return flaw("one was taken from an empty queue");
      popped_.insert(first->first.substr(0, first->first.find(' ')));
      queue_of_.erase(first);
    } else if (verb == "DEL" || verb == "UNLINK") {
      queue_of_.clear();
    }
  }

  void grant(const AofCommand& command) {
    ++history_.grants;
    const std::string& token = command.at(2);
    if (holder_ && popped_.contains(token)) {
      ++history_.handed_over;
    } else if (holder_) {
      flaw("granted to " + token + " while " + *holder_ + " held it");
    }
    if (announced_ == token) ++history_.ours;
    if (announced_ && announced_ != token) flaw("the fence of " + *announced_ + " came with the token " + token);
    announced_.reset();
    holder_ = token;
    const auto px = std::find(command.begin() + 3, command.end(), "PXAT");
    if (px == command.end() || px + 1 == command.end()) {
      flaw("granted to " + token + " without an expiry");
    } else {
      until_ = std::stoll(*(px + 1));
    }
  }

  void renewal(long long until) {
    ++history_.renewals;
    if (!holder_) flaw("a renewal revived it");
    if (until < until_) flaw("a renewal shortened it by " + std::to_string(until_ - until) + " ms");
    until_ = until;
  }

  void write(const AofCommand& command) {
    ++history_.writes;
    const auto field = [&](const char* name) { return *std::next(std::find(command.begin(), command.end(), name)); };
    const std::uint64_t number = std::stoull(field("fence"));
    const std::string token = field("value");
    if (number < written_) {
      flaw("the resource took fence " + std::to_string(number) + " after " + std::to_string(written_));
    }
    written_ = number;
    const auto [first, fresh] = writers_.emplace(number, token);
    if (!fresh && first->second != token) flaw("two tokens wrote with fence " + std::to_string(number));
  }

  const std::string key_, meta_, queue_, resource_;
  History history_;
  std::size_t at_{0};
  std::optional<std::string> holder_, announced_;
  std::set<std::string> popped_;  // in this transaction
  std::map<std::string, double> queue_of_;
  long long until_{0};
  std::uint64_t last_fence_{0}, written_{0};
  std::map<std::uint64_t, std::string> writers_;
};

}  // namespace

std::vector<std::string> keep_a_history() {
  return {"appendonly yes", "appendfsync no", "auto-aof-rewrite-percentage 0"};
}

std::vector<AofCommand> read_history(const std::string& server_dir) {
  std::vector<AofCommand> commands;
  for (const auto& file : std::filesystem::recursive_directory_iterator(server_dir)) {
    if (!file.path().string().ends_with(".incr.aof")) continue;
    std::ifstream in(file.path(), std::ios::binary);
    RawReader reader;
    reader.feed(std::string{std::istreambuf_iterator<char>(in), {}});
    while (const auto reply = reader.next()) {
      AofCommand& command = commands.emplace_back();
      for (const RawReply& word : reply->elements) command.push_back(word.text);
    }
  }
  if (commands.empty()) throw std::runtime_error("the server left no history in " + server_dir);
  return commands;
}

History judge(const std::vector<AofCommand>& commands, const std::string& key, const std::string& resource) {
  Judge judge(key, resource);
  for (const AofCommand& command : commands) judge.see(command);
  return std::move(judge).result();
}

}  // namespace v0
}  // namespace redlease
