#include "store/script_call.hpp"

#include <algorithm>

#include "concat.hpp"
#include "helper_names.hpp"
#include "wire/server_errors.hpp"

namespace redlease {
inline namespace v0 {

namespace {

// EVAL or EVALSHA, the script, how many keys, keys and arguments.
void append_script(std::string& frame, std::string_view verb, std::string_view script, const ScriptCall& call) {
  std::array<std::string_view, 20> words{verb, script};
  const Decimal keys(static_cast<std::int64_t>(call.keys));
  words[2] = keys;
  std::copy(call.words.begin(), call.words.end(), words.begin() + 3);
  append_command(frame, std::span(words).first(call.words.size() + 3));
}

Error refused_within(const Reply& reply, const std::string& server) {
  const std::string& command = reply.items[1].text;
  const std::string& text = reply.items[2].text;
  const Errc code = classify_refusal(text);
  std::string detail = concat(
      {server, " refused ", command, " ", quoted(reply.items[3].text), " inside the script (", text,
       command == "ZREM" ? "); a place in the queue may be left" : "); nothing was granted, changed or given back"});
  return advised({code, std::move(detail)}, text);
}

}  // namespace

void append_eval(std::string& frame, const ScriptCall& call) {
  append_script(frame, "EVAL", call.script.source(), call);
}

void append_evalsha(std::string& frame, const ScriptCall& call) {
  append_script(frame, "EVALSHA", call.script.sha(), call);
}

bool needs_eval(const Reply& reply) noexcept {
  return reply.is_error() && classify(reply.text).proof == Proof::needs_eval;
}

bool has_shape(const Reply& reply, std::string_view shape) noexcept {
  if (reply.kind != Reply::Kind::array || reply.elements != shape.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const Reply::Kind wanted = shape[i] == 'i'   ? Reply::Kind::integer
                               : shape[i] == 'a' ? Reply::Kind::array
                                                 : Reply::Kind::text;
    if (reply.items[i].kind != wanted) return false;
  }
  return true;
}

void not_understood(ScriptAnswer& answer, const Connection& connection) {
  answer.delivery = Delivery::in_doubt;
  answer.reply = nullptr;
  answer.error = {Errc::bad_reply, concat({connection.server(), " answered something that the script never says"})};
}

ScriptAnswer run(Connection& connection, const ScriptCall& call, const Limits& limits, const Clock& clock) {
  ScriptAnswer answer;
  std::string& frame = connection.frame();
  if (call.ping) append_command(frame, {"PING"});
  append_evalsha(frame, call);
  answer.sent = clock.now();
  answer.delivery = connection.call(frame, limits, call.ping ? 2 : 1);
  if (answer.delivery == Delivery::answered && needs_eval(connection.reply())) {
    append_eval(connection.frame(), call);
    answer.sent = clock.now();
    answer.delivery = connection.call(frame, limits);
  }
  if (answer.delivery == Delivery::answered) {
    judge(answer, connection);
  } else {
    answer.error = connection.error();
  }
  return answer;
}

void judge(ScriptAnswer& answer, const Connection& connection) {
  const Reply& reply = connection.reply();
  if (!reply.is_error()) {
    if (has_shape(reply, "ittt") && reply.items[0].integer == -2) {
      answer.delivery = Delivery::not_executed;
      answer.refused = reply.items[1].text;
      answer.error = refused_within(reply, connection.server());
    } else {
      answer.reply = &reply;
    }
    return;
  }
  const std::string text(quotable(reply.text));
  const ErrorReply meaning = classify(text);
  answer.error = {meaning.code, concat({connection.server(), " answered ", text})};
  if (meaning.proof == Proof::not_executed) {
    answer.delivery = Delivery::not_executed;
    answer.error.detail += "; nothing was executed";
  } else if (text.starts_with("ERR unknown command")) {
    // The one text that is looked at. Where a server words it otherwise, the outcome is "in doubt", which is true as
    // well.
    answer.delivery = Delivery::not_executed;
    answer.error.code = Errc::unsupported;
    answer.error.detail += "; nothing was executed. Leases need EVAL and EVALSHA";
  } else {
    answer.delivery = Delivery::in_doubt;
    answer.error.detail += "; the script may have run in part";
  }
  answer.error = advised(std::move(answer.error), text);
}

}  // namespace v0
}  // namespace redlease
