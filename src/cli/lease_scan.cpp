#include "cli/lease_scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "cli/exit_code.hpp"
#include "cli/glob.hpp"
#include "cli/output.hpp"
#include "cli/replies.hpp"
#include "mutex.hpp"
#include "redlease/wire/connection.hpp"
#include "store/key_names.hpp"

namespace redlease::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto reply_limit = 5'000ms;  // of one page
constexpr int most_keys = 500, fewest_keys = 4;
constexpr std::size_t looks_at_once = 8;

Failure refused(const Connection& connection, const Context& context, std::string_view command) {
  const Reply& reply = connection.reply();
  const std::string_view word = reply.first_word();
  const std::string said = fmt::format("looking for leases at {}: the server answered {} with {}", context.server(),
                                       command, reply.is_error() ? printable(reply.text) : "something else than keys");
  if (word == "NOPERM" || word == "NOAUTH") {
    return {Exit::denied, "denied",
            fmt::format("{}. The user needs +scan, and with --all also +pttl (ACL SETUSER name +scan +pttl); a name "
                        "without wildcards is looked at without it",
                        said)};
  }
  const bool missing = reply.is_error() && word == "ERR";
  return {missing ? Exit::not_a_lease : Exit::unavailable, missing ? "unsupported" : "server_error", said};
}

// A pass over the keys of one server.
class Pass {
 public:
  Pass(const Context& context, const std::string& match, std::stop_token stop)
      : context_(context), match_(match), stop_(std::move(stop)) {
    connect();
  }

  // False after the last page. A page of names that are too long for one reply is asked for again, smaller.
  bool page(std::vector<std::string>& keys) {
    for (;;) {
      std::string& frame = connection_->frame();
      append_command(frame, {"SCAN", cursor_, "MATCH", match_, "COUNT", std::to_string(count_)});
      const Delivery delivery = connection_->call(frame, limits());
      if (delivery == Delivery::answered) break;
      if (connection_->error().code != Errc::bad_reply || count_ <= fewest_keys) throw failure(connection_->error());
      count_ = std::max(fewest_keys, count_ / 4);
      connect();
    }
    const Reply& reply = connection_->reply();
    if (reply.kind != Reply::Kind::array || reply.elements != 2 || reply.items[1].kind != Reply::Kind::array) {
      throw refused(*connection_, context_, "SCAN");
    }
    cursor_ = reply.items[0].text;
    keys.clear();
    for (std::size_t i = 0; i < reply.items[1].elements; ++i) keys.push_back(reply.items[1].items[i].text);
    return cursor_ != "0";
  }

  // Leaves those that will expire.
  void drop_lasting(std::vector<std::string>& keys) {
    if (keys.empty()) return;
    std::string& frame = connection_->frame();
    for (const std::string& key : keys) append_command(frame, {"PTTL", key});
    const Limits limit = limits();
    if (!connection_->send(frame, limit, keys.size())) throw failure(connection_->error());
    std::size_t kept = 0;
    for (std::string& key : keys) {
      const Reply* const reply = next_reply(*connection_, limit);
      if (reply == nullptr) throw silent();
      if (reply->is_error()) throw refused(*connection_, context_, "PTTL");
      if (reply->integer >= 0) std::swap(keys[kept++], key);
    }
    keys.resize(kept);
  }

 private:
  Limits limits() const { return {deadline_in(reply_limit), stop_}; }

  void connect() {
    auto opened = Connection::open(context_.endpoint(), limits());
    if (!opened.has_value()) throw failure(opened.error());
    connection_ = std::move(opened).value();
  }

  Failure silent() const {
    if (connection_->dead()) return failure(connection_->error());
    return {Exit::unavailable, "timed_out",
            fmt::format("looking for leases: {} did not answer in time", context_.server())};
  }

  const Context& context_;
  const std::string& match_;
  const std::stop_token stop_;
  std::unique_ptr<Connection> connection_;
  std::string cursor_{"0"};
  int count_{most_keys};
};

// The one of the two forms that makes this very key.
std::optional<std::string> lease_of(std::string_view key, std::string_view suffix) {
  if (!key.ends_with(suffix)) return std::nullopt;
  const std::string_view body = key.substr(0, key.size() - suffix.size());
  if (body.size() < 4) return std::nullopt;
  for (const std::size_t size : {body.size() - 1, (body.size() - 3) / 2}) {
    const std::string_view name = body.substr(0, size);
    if (!name.empty() && helper_name(name, suffix) == key) return std::string(name);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> lease_of_helper(std::string_view key) {
  for (const std::string_view suffix : {meta_suffix, queue_suffix, seen_suffix}) {
    if (auto name = lease_of(key, suffix)) return name;
  }
  return std::nullopt;
}

void scan_names(const Context& context, const std::string& pattern, Wanted wanted, const std::stop_token& stop,
                const std::function<void(const std::vector<std::string>&)>& page) {
  const std::string& prefix = context.prefix();
  std::string match = glob_escaped(prefix + glob_head(pattern)) + "*";
  // Helper keys alone are sent to us, not the million others. They do not match the pattern itself, so we apply it.
  if (wanted == Wanted::ours) match += meta_suffix;
  const auto fits = [&](std::string_view key) {
    return key.size() > prefix.size() && key.size() <= LeaseKey::max_size && key.starts_with(prefix) &&
           !is_helper_name(key) && glob_matches(pattern, key.substr(prefix.size()));
  };
  Pass pass(context, match, stop);
  std::vector<std::string> keys, others, names;
  for (bool more = true; more && !stop.stop_requested();) {
    more = pass.page(keys);
    others.clear();
    names.clear();
    const auto add = [&](const std::string& key) { names.push_back(key.substr(prefix.size())); };
    for (std::string& key : keys) {
      if (const auto lease = lease_of_helper(key)) {
        if (fits(*lease)) add(*lease);
      } else if (wanted == Wanted::all && fits(key)) {
        others.push_back(std::move(key));
      }
    }
    pass.drop_lasting(others);
    for (const std::string& key : others) add(key);
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    page(names);
  }
}

std::vector<Look> look_at(Client& client, const std::vector<std::string>& names, const std::stop_token& stop) {
  std::vector<Look> looks;
  for (const std::string& name : names) looks.push_back({name, {}, {}});
  std::atomic<std::size_t> next{0};
  Mutex mutex;
  std::optional<Error> error;  // the first; it ends the others' work too
  const auto work = [&] {
    for (std::size_t i = next++; i < looks.size() && !stop.stop_requested(); i = next++) {
      const Deadline before = LeaseClock::now();
      auto info = client.inspect(looks[i].key);
      looks[i].at = before + (LeaseClock::now() - before) / 2;
      if (info.has_value()) {
        looks[i].info = std::move(info).value();
      } else if (info.error().code != Errc::not_a_lease) {
        next = looks.size();
        const MutexLock lock(mutex);
        if (!error) error = info.error();
      }
    }
  };
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < std::min(looks_at_once, names.size() / 4); ++i) helpers.emplace_back(work);
  work();
  helpers.clear();
  if (error) throw failure(*error);
  return looks;
}

}  // namespace redlease::cli
