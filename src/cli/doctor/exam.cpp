#include "cli/doctor/exam.hpp"

#include <fmt/format.h>

#include <cctype>
#include <chrono>
#include <utility>

#include "cli/exit_code.hpp"
#include "cli/output.hpp"
#include "cli/replies.hpp"
#include "store/key_names.hpp"

namespace redlease::cli::doctor {
namespace {

using namespace std::chrono_literals;

constexpr Millis patience{2'000};    // for one answer
constexpr Millis all_of_it{60'000};  // for the examination
constexpr int enough_silences = 3;

std::string mishap(const Reply& reply) {
  if (reply.is_error()) return fmt::format("was refused ({})", reply.first_word());
  return "got an answer that is none";
}

// "+get"
std::string rule_for(const std::string& command) {
  if (command == "CONFIG") return "+config|get";
  std::string rule = "+";
  for (const char c : command) rule += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return rule;
}

}  // namespace

Exam::Exam(const Context& context, Terms terms, std::stop_token stop)
    : context_(context),
      terms_(std::move(terms)),
      endpoint_(context.endpoint()),
      stop_(std::move(stop)),
      end_(deadline_in(all_of_it)) {
  const bool random = terms_.scratch_key.empty();
  if (random) terms_.scratch_key = "redlease:doctor:" + OwnerToken::generate().str().substr(0, 16);
  const LeaseKey fits(scratch_key()), alone(terms_.scratch_key);  // else std::invalid_argument
  auto opened = Connection::open(endpoint_, limits());
  if (!opened.has_value()) throw failure(opened.error());
  connection_ = std::move(opened).value();
  if (!random) insist_on_free_scratch();
  first_time_ = best_time(9);
}

Exam::~Exam() {
  try {
    if (wrote_scratch_) remove_scratch();
  } catch (...) {
    // It expires.
  }
}

std::vector<std::string> Exam::scratch_names() const {
  const std::string key = scratch_key();
  const HelperNames names(key);
  return {key, std::string(names.meta()), std::string(names.queue()), std::string(names.seen())};
}

// One that the user names may be a lease, whose helpers would be removed at the end.
void Exam::insist_on_free_scratch() {
  for (const std::string& name : scratch_names()) {
    const auto left = ask_for(Reply::Kind::integer, {"PTTL", name});
    if (left && left->integer == -2) continue;
    throw Failure(Exit::usage, "usage",
                  fmt::format("the scratch key must be a name that nobody uses, but {} {}", printable(name),
                              left ? "exists" : "can not be looked at: " + trouble()));
  }
}

void Exam::expire_scratch() {
  wrote_scratch_ = true;
  const auto names = scratch_names();  // the lease itself has its ttl
  for (std::size_t i = 1; i < names.size(); ++i) ask({"PEXPIRE", names[i], "60000"});
}

bool Exam::remove_scratch() {
  const std::stop_token stop = std::exchange(stop_, {});
  end_ = Deadline::max();
  std::vector<std::string> words = scratch_names();
  words.insert(words.begin(), "DEL");
  const auto reply = ask(words);
  stop_ = stop;
  wrote_scratch_ = !reply || reply->kind != Reply::Kind::integer;
  if (reply && wrote_scratch_) set_trouble("DEL " + mishap(*reply));
  return !wrote_scratch_;
}

Verdict Exam::unknown(const std::string& before) const {
  Verdict verdict = doctor::unknown(before + trouble_.why);
  if (!trouble_.rule.empty()) {
    verdict.mend = fmt::format("`ACL SETUSER {} {}`, to let this user ask", user(), trouble_.rule);
  }
  return verdict;
}

Millis Exam::op_timeout() const {
  return terms_.op_timeout > Millis(0) ? terms_.op_timeout : op_timeout_of({.ttl = terms_.ttl});
}

Limits Exam::limits() const { return {std::min(deadline_in(patience), end_), stop_}; }

// A server that is silent again and again is not waited for at every question.
Connection* Exam::connection() {
  if (connection_ && !connection_->broken()) return connection_.get();
  connection_.reset();
  if (silences_ >= enough_silences) return set_trouble("the server no longer answers"), nullptr;
  auto opened = Connection::open(endpoint_, limits());
  if (!opened.has_value()) return ++silences_, set_trouble(opened.error().detail), nullptr;
  connection_ = std::move(opened).value();
  return connection_.get();
}

void Exam::count(const Reply& reply) {
  if (reply.is_error() && reply.first_word() == "NOPERM") ++refusals_;
}

std::optional<Reply> Exam::ask(std::span<const std::string> words) {
  Connection* const server = connection();
  if (server == nullptr) return std::nullopt;
  std::string& frame = server->frame();
  append_command(frame, std::vector<std::string_view>(words.begin(), words.end()));
  if (server->call(frame, limits()) != Delivery::answered) {
    silent(*server);
    return std::nullopt;
  }
  silences_ = 0;
  count(server->reply());
  return server->reply();
}

std::optional<Reply> Exam::ask_apart(std::span<const std::string> words) {
  auto usual = std::move(connection_);
  auto reply = ask(words);
  connection_ = std::move(usual);
  return reply;
}

std::optional<std::vector<Reply>> Exam::ask_all(const std::vector<std::vector<std::string>>& commands) {
  std::vector<Reply> replies;
  if (commands.empty()) return replies;
  Connection* const server = connection();
  if (server == nullptr) return std::nullopt;
  std::string& frame = server->frame();
  for (const auto& words : commands) {
    append_command(frame, std::vector<std::string_view>(words.begin(), words.end()));
  }
  const Limits limits = this->limits();
  if (!server->send(frame, limits, commands.size())) return silent(*server), std::nullopt;
  while (replies.size() < commands.size()) {
    const Reply* const reply = next_reply(*server, limits);
    if (reply == nullptr) return silent(*server), std::nullopt;
    replies.push_back(*reply);
    count(*reply);
  }
  silences_ = 0;
  return replies;
}

void Exam::silent(const Connection& server) {
  ++silences_;
  set_trouble(server.dead() ? server.error().detail : "the server did not answer in time");
}

std::optional<Reply> Exam::ask_for(Reply::Kind kind, std::initializer_list<std::string> words) {
  auto reply = ask(words);
  if (!reply || reply->kind == kind) return reply;
  const std::string& command = *words.begin();
  set_trouble(fmt::format("{} {}", command, mishap(*reply)));
  if (reply->is_error() && reply->first_word() == "NOPERM") trouble_.rule = rule_for(command);
  return std::nullopt;
}

}  // namespace redlease::cli::doctor
