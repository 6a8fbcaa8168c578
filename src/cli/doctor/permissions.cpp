// Every rule of docs/acl.md, tried by a command that does nothing: on keys that do not exist, and in a way that creates
// none. A server looks at the user's rules before anything else, so any other answer than NOPERM means "allowed".
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "cli/doctor/exam.hpp"
#include "cli/doctor/finding.hpp"
#include "cli/glob.hpp"
#include "store/key_names.hpp"

namespace redlease::cli::doctor {
namespace {

using Kind = Reply::Kind;

struct Rule {
  std::string_view rule;     ///< as ACL SETUSER wants it
  std::string_view command;  ///< K, M, Q, W: the scratch lease's keys; C: an inbox of nobody's
  Kind answer;               ///< where it is allowed
};

constexpr Rule eval_rule{"+eval", "EVAL return(1) 0", Kind::integer};
constexpr Rule keys_rule{"~", "EVAL return(1) 4 K M Q W", Kind::integer};
constexpr std::array<Rule, 8> lease_rules{{
    eval_rule,
    {"+evalsha", "EVALSHA 0000000000000000000000000000000000000000 0", Kind::error},
    {"+time", "TIME", Kind::array},
    {"+get", "GET K", Kind::nil},
    {"+set", "SET K x XX PX 1000", Kind::nil},
    {"+del", "DEL K", Kind::integer},
    {"+pttl", "PTTL K", Kind::integer},
    {"+pexpire", "PEXPIRE K 1000", Kind::integer},
}};
constexpr std::array<Rule, 11> queue_rules{{
    {"+ping", "PING", Kind::status},
    {"+zadd", "ZADD Q XX 1 x", Kind::integer},
    {"+zcard", "ZCARD Q", Kind::integer},
    {"+zpopmin", "ZPOPMIN Q", Kind::array},
    {"+zrange", "ZRANGE Q 0 0", Kind::array},
    {"+zrank", "ZRANK Q x", Kind::nil},
    {"+zrem", "ZREM Q x", Kind::integer},
    {"+zscore", "ZSCORE Q x", Kind::nil},
    {"+hget", "HGET W x", Kind::nil},
    {"+hset", "HSET W a b c", Kind::error},  // a field without a value: allowed, and refused as nonsense
    {"+hdel", "HDEL W x", Kind::integer},
}};
constexpr std::array<Rule, 3> wake_rules{{
    {"+publish", "PUBLISH C x", Kind::integer},
    {"+subscribe", "SUBSCRIBE C", Kind::array},
    {"+pubsub", "PUBSUB NUMSUB C", Kind::array},
}};
constexpr std::array<Rule, 3> fenced_rules{{
    {"+hget", "HGET K x", Kind::nil},
    {"+hset", "HSET K a b c", Kind::error},
    {"+exists", "EXISTS K", Kind::integer},
}};
constexpr std::array<Rule, 1> name_rules{{{"+client|setname", "CLIENT SETNAME redlease-cli", Kind::status}}};

std::vector<std::string> words_of(const Exam& exam, std::string_view command) {
  const std::string key = exam.scratch_key();
  const HelperNames names(key);
  std::vector<std::string> words;
  while (!command.empty()) {
    const std::string_view word = command.substr(0, command.find(' '));
    command.remove_prefix(std::min(word.size() + 1, command.size()));
    words.emplace_back(word == "K"   ? std::string_view(key)
                       : word == "M" ? names.meta()
                       : word == "Q" ? names.queue()
                       : word == "W" ? names.seen()
                       : word == "C" ? "redlease:inbox:doctor"
                                     : word);
  }
  return words;
}

enum class Allowed : std::uint8_t { yes, no, not_there, unknown };

// The states of a server that it looks for after the user's rules.
bool is_state(std::string_view word) {
  constexpr std::array<std::string_view, 13> states{"OOM",      "MISCONF",   "READONLY",   "LOADING",  "NOREPLICAS",
                                                    "MOVED",    "ASK",       "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN",
                                                    "NOSCRIPT", "CROSSSLOT", "WRONGTYPE"};
  return std::find(states.begin(), states.end(), word) != states.end();
}

Allowed ask(Exam& exam, const Rule& rule) {
  const auto words = words_of(exam, rule.command);
  // Behind a SUBSCRIBE a connection takes no other commands.
  const auto reply = words[0] == "SUBSCRIBE" ? exam.ask_apart(words) : exam.ask(words);
  if (!reply) return Allowed::unknown;
  if (reply->is_error()) {
    const auto word = reply->first_word();
    if (word == "NOPERM") return Allowed::no;
    if (is_state(word)) return Allowed::yes;
    if (word == "ERR") return rule.answer == Kind::error && rule.rule == "+hset" ? Allowed::yes : Allowed::not_there;
    return Allowed::unknown;
  }
  return reply->kind == rule.answer ? Allowed::yes : Allowed::unknown;
}

struct Asked {
  std::vector<std::string> refused, not_there, unknown;
  bool all() const { return refused.empty() && not_there.empty() && unknown.empty(); }
};

Asked ask_all(Exam& exam, std::span<const Rule> rules) {
  Asked asked;
  for (const Rule& rule : rules) {
    const Allowed allowed = ask(exam, rule);
    if (allowed == Allowed::no) asked.refused.emplace_back(rule.rule);
    if (allowed == Allowed::not_there) asked.not_there.emplace_back(rule.rule);
    if (allowed == Allowed::unknown) asked.unknown.emplace_back(rule.rule);
  }
  return asked;
}

bool contains(const std::vector<std::string>& rules, std::string_view rule) {
  return std::find(rules.begin(), rules.end(), rule) != rules.end();
}

std::string grant(const Exam& exam, const std::vector<std::string>& rules) {
  return fmt::format("`ACL SETUSER {} {}`, then ACL SAVE or CONFIG REWRITE to keep it", exam.user(),
                     fmt::join(rules, " "));
}

// What is to be said of rules that are not all there; `worst` is what their lack amounts to.
Verdict judged(const Exam& exam, const Asked& asked, Status worst, std::string_view risk) {
  if (!asked.refused.empty()) {
    return {worst, fmt::format("refused: {}", fmt::join(asked.refused, " ")), std::string(risk),
            grant(exam, asked.refused)};
  }
  if (!asked.not_there.empty()) {
    return {worst, fmt::format("not on this server: {}", fmt::join(asked.not_there, " ")), std::string(risk),
            "take the rename-command lines of these commands out of its configuration and restart it; or use a service "
            "that offers them"};
  }
  return unknown(fmt::format("no answer that tells: {}", fmt::join(asked.unknown, " ")));
}

Verdict lease(Exam& exam) {
  constexpr std::string_view risk = "leases are refused (denied), or can not be renewed or given back";
  // Whether keys with this beginning are allowed is told by an EVAL that names them, if EVAL itself is allowed.
  if (ask(exam, eval_rule) == Allowed::yes && ask(exam, keys_rule) == Allowed::no) {
    exam.keys_refused = true;
    const std::string& prefix = exam.context().prefix();
    std::string mend = grant(exam, {"~" + glob_escaped(prefix) + "*"}) + ", and examine it again";
    if (prefix.empty()) mend += "; or say --prefix, if this user may touch only keys with a certain beginning";
    return fail(prefix.empty() ? "refused: keys of any name" : "refused: keys that begin with " + prefix,
                std::string(risk), std::move(mend));
  }
  const Asked asked = ask_all(exam, lease_rules);
  exam.may_lease = asked.all();
  if (asked.all()) return ok("everything that leases need is allowed");
  return judged(exam, asked, Status::fail, risk);
}

// Of a user who may touch no keys, the answers tell nothing about the commands.
Verdict keys_first() { return unknown("not tried: see acl.lease"); }

Verdict queue(Exam& exam) {
  if (exam.keys_refused) return keys_first();
  const Asked asked = ask_all(exam, queue_rules);
  exam.may_queue = asked.all();
  if (asked.all()) return ok("everything that waiting in turn needs is allowed");
  return judged(exam, asked, Status::warn,
                "who waits has no place in a queue, or is passed over: no order, longer waits, more load; leases are "
                "as safe as ever");
}

Verdict wake(Exam& exam) {
  Asked asked = ask_all(exam, wake_rules);
  if (asked.all()) return ok("waiters can be woken");
  // Command or channel: servers do not tell which. If one of the two commands passes, the channel is allowed.
  if (contains(asked.refused, "+publish") && contains(asked.refused, "+subscribe")) {
    asked.refused.emplace_back("&redlease:inbox:*");
  }
  return judged(exam, asked, Status::warn,
                "waiters are not told when it is their turn: it is kept until they ask, up to several seconds");
}

Verdict optional(Exam& exam, std::span<const Rule> rules, std::string_view yes, std::string_view no) {
  const Asked asked = ask_all(exam, rules);
  if (asked.all()) return ok(std::string(yes));
  if (asked.refused.empty() && asked.not_there.empty()) return judged(exam, asked, Status::warn, "");
  Verdict verdict = judged(exam, asked, Status::ok, "");
  verdict.found = fmt::format("{} ({})", no, verdict.found);
  return verdict;
}

Verdict fenced(Exam& exam) {
  if (exam.keys_refused) return keys_first();
  return optional(exam, fenced_rules, "fenced_set is allowed",
                  "fenced_set is not allowed, which matters only where it is used");
}

Verdict name(Exam& exam) {
  return optional(exam, name_rules, "connections have a name in CLIENT LIST",
                  "connections have no name in CLIENT LIST, and each leaves an entry in ACL LOG");
}

}  // namespace

std::span<const Check> permission_checks() {
  static constexpr std::array<Check, 5> checks{
      {{"acl.lease", lease}, {"acl.queue", queue}, {"acl.wake", wake}, {"acl.fenced_set", fenced}, {"acl.name", name}}};
  return checks;
}

}  // namespace redlease::cli::doctor
