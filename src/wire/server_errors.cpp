#include "wire/server_errors.hpp"

#include <array>

namespace redlease {
inline namespace v0 {

namespace {

struct Row {
  std::string_view word;
  ErrorReply meaning;
  std::string_view advice;
};

// The one table. Sources: the servers' own error lists (Redis 6.0 to 8, Valkey 7.2 to 9).
constexpr std::array<Row, 19> table{{
    {"NOSCRIPT", {Errc::server_error, Proof::needs_eval}, ""},
    {"NOAUTH", {Errc::denied, Proof::not_executed}, "Put the password into the URL"},
    {"WRONGPASS", {Errc::denied, Proof::not_executed}, "Check user and password of the URL"},
    {"NOPERM", {Errc::denied, Proof::not_executed}, ""},
    {"DENIED",
     {Errc::denied, Proof::not_executed},
     "The server runs in protected mode: set a password or bind it to loopback"},
    {"LOADING", {Errc::not_ready, Proof::not_executed}, "The server is loading its data: try again"},
    {"READONLY", {Errc::not_ready, Proof::not_executed}, "This is a replica: use the URL of its primary"},
    {"OOM", {Errc::not_ready, Proof::not_executed}, "The server's memory is used up: raise maxmemory"},
    {"NOREPLICAS", {Errc::not_ready, Proof::not_executed}, "The server misses replicas (min-replicas-to-write)"},
    {"MASTERDOWN", {Errc::not_ready, Proof::not_executed}, "This is a replica whose primary is down"},
    {"CLUSTERDOWN", {Errc::not_ready, Proof::not_executed}, "The cluster is down: see CLUSTER INFO"},
    {"MISCONF", {Errc::not_ready, Proof::not_executed}, "The server can not persist: see its log and disk"},
    {"BUSY", {Errc::not_ready, Proof::not_executed}, "A script occupies the server: see SCRIPT KILL"},
    {"TRYAGAIN", {Errc::not_ready, Proof::not_executed}, "The key is on its way to another node: try again"},
    {"MOVED", {Errc::unsupported, Proof::not_executed}, "This is a cluster node: it needs a redis+cluster:// URL"},
    {"ASK", {Errc::unsupported, Proof::not_executed}, "This is a cluster node: it needs a redis+cluster:// URL"},
    {"CROSSSLOT", {Errc::unsupported, Proof::not_executed}, "Names with these braces can not be leased on a cluster"},
    {"WRONGTYPE", {Errc::not_a_lease, Proof::not_executed}, "Choose another name, or remove what is there"},
    {"NOPROTO", {Errc::unsupported, Proof::not_executed}, ""},
}};

const Row* find(std::string_view text) noexcept {
  const std::string_view word = text.substr(0, text.find(' '));
  for (const Row& row : table) {
    if (row.word == word) return &row;
  }
  return nullptr;
}

// "@user_script: 12: -OOM command…" (up to Redis 6.2) is "OOM command…".
std::string_view bare(std::string_view text) noexcept {
  if (text.starts_with('@')) {
    for (int colons = 0; colons < 2; ++colons) {
      if (const auto at = text.find(": "); at != std::string_view::npos) text.remove_prefix(at + 2);
    }
  }
  if (text.starts_with('-')) text.remove_prefix(1);
  return text;
}

}  // namespace

std::string_view quotable(std::string_view error_text) noexcept {
  return error_text.substr(0, error_text.find(", with args"));
}

ErrorReply classify(std::string_view error_text) noexcept {
  const Row* row = find(error_text);
  return row != nullptr ? row->meaning : ErrorReply{Errc::server_error, Proof::may_have_run};
}

Errc classify_refusal(std::string_view error_text) noexcept {
  const Row* row = find(bare(error_text));
  return row != nullptr ? row->meaning.code : Errc::denied;
}

std::string_view advice(Errc code, std::string_view error_text) noexcept {
  const Row* row = find(bare(error_text));
  if (row != nullptr && !row->advice.empty()) return row->advice;
  return code == Errc::denied
             ? "The user needs +eval +evalsha +get +set +del +pttl +pexpire +time on keys that begin with the lease's "
               "name; for the queue &redlease:inbox:* +zadd +zcard +zpopmin +zrange +zrank +zrem +zscore +hget +hset "
               "+hdel +publish +subscribe +pubsub +ping; +hget +hset +exists for fenced_set, +ping for ping"
             : "";
}

Error advised(Error error, std::string_view error_text) {
  if (const auto what_to_do = advice(static_cast<Errc>(error.code.value()), error_text); !what_to_do.empty()) {
    error.detail.append(". ").append(what_to_do);
  }
  return error;
}

}  // namespace v0
}  // namespace redlease
