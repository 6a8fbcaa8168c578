#include "redlease/wire/connection.hpp"

#include <array>
#include <span>
#include <utility>

#include "concat.hpp"
#include "wire/decimal.hpp"
#include "wire/server_errors.hpp"
#include "wire/tls_transport.hpp"

namespace redlease {
inline namespace v0 {

namespace {

constexpr std::size_t frame_room = 2'048;  // a renewal of the longest key and token fits

}  // namespace

Connection::Connection(const Endpoint& endpoint, std::unique_ptr<Transport> transport)
    : transport_(std::move(transport)), server_(endpoint.display) {
  frame_.reserve(frame_room);
}

Result<std::unique_ptr<Connection>> Connection::open(const Endpoint& endpoint, const Limits& limits) {
  auto transport = connect(endpoint, limits);
  if (!transport.has_value()) return transport.error();
  return open(endpoint, std::move(transport).value(), limits);
}

Result<std::unique_ptr<Connection>> Connection::open(const Endpoint& endpoint, std::unique_ptr<Transport> transport,
                                                     const Limits& limits) {
  std::unique_ptr<Connection> connection(new Connection(endpoint, std::move(transport)));
  if (auto error = connection->introduce(endpoint, limits)) return *std::move(error);
  return connection;
}

std::optional<Error> Connection::introduce(const Endpoint& endpoint, const Limits& limits) {
  enum Step : std::uint8_t { auth, select, setname, time };
  std::array<Step, 4> steps{};
  std::size_t count = 0;
  std::string& out = frame();
  if (endpoint.password || !endpoint.user.empty()) {
    const std::string_view password = endpoint.password ? std::string_view(*endpoint.password) : "";
    if (endpoint.user.empty()) {
      append_command(out, {"AUTH", password});
    } else {
      append_command(out, {"AUTH", endpoint.user, password});
    }
    steps.at(count++) = auth;
  }
  if (endpoint.db != 0) {
    append_command(out, {"SELECT", std::to_string(endpoint.db)});
    steps.at(count++) = select;
  }
  if (!endpoint.client_name.empty()) {
    append_command(out, {"CLIENT", "SETNAME", endpoint.client_name});
    steps.at(count++) = setname;
  }
  append_command(out, {"TIME"});
  steps.at(count++) = time;

  const Deadline before = LeaseClock::now();
  Exchange introduction(out.size(), 0);
  const auto unheard = [this] {
    if (error_.code == Errc::timed_out) {
      error_.detail += " when the connection was made; nothing was executed. Does it hang, or is the limit too short?";
    }
    return error_;
  };
  const Io written = transport_->write(out, limits);
  introduction.wrote(written.bytes);
  if (written.status != IoStatus::ok) {
    fail(written, introduction);
    return unheard();
  }
  std::optional<Error> refused;  // what the first error reply comes to, unless the server closes behind it
  std::string said;
  for (const Step step : std::span(steps).first(count)) {
    Exchange answer(0, 0);
    if (!await(answer, limits)) {
      // A bare ERR and a close is a server that lets nobody in (too many clients, say), whatever it was an answer to.
      const bool shut_out = error_.code == Errc::connection_closed && said.starts_with("ERR");
      if (refused && !shut_out) return refused;
      if (!said.empty()) error_.detail.append(". It had said: ").append(said);
      return unheard();
    }
    if (!reply().is_error()) {
      if (step == time && reply().kind == Reply::Kind::array && reply().elements == 2) {
        saw_time_reply(before);
      }
      continue;
    }
    if (refused) continue;
    const std::string text(quotable(reply().text));
    const Errc code = classify(text).code;
    if (said.empty()) said = text;
    if (step == auth) {
      refused = Error{code == Errc::not_ready ? Errc::not_ready : Errc::denied,
                      concat({server_, " refused the user or password of the URL (", text,
                              "); nothing was executed. Check user, password and the user's ACL"})};
    } else if (step == select) {
      refused =
          Error{code == Errc::denied || code == Errc::not_ready ? code : Errc::unsupported,
                concat({server_, " refused SELECT ", std::to_string(endpoint.db), " (", text,
                        "); nothing was executed. Does the server have that database, and may the user select it?"})};
    } else if (const auto word = reply().first_word();
               step == time && (word == "NOAUTH" || word == "DENIED" || code == Errc::not_ready)) {
      refused = Error{code, concat({server_, " lets nobody in (", text, "); nothing was executed. ",
                                    code == Errc::denied ? "Does the URL lack a password?" : "It may pass"})};
    }
  }
  return refused;
}

bool Connection::send(std::string_view frame, const Limits& limits, std::size_t commands) {
  if (dead_) return false;
  dead_ = true;  // until it is known better: an exception on the way must not leave a connection that looks sound
  Exchange exchange(frame.size(), owed_);
  const Io written = transport_->write(frame, limits);
  exchange.wrote(written.bytes);
  if (exchange.delivery() == Delivery::not_executed) {
    fail(written, exchange);
    return false;
  }
  dead_ = false;
  owed_ += commands;
  return true;
}

Delivery Connection::call(std::string_view frame, const Limits& limits, std::size_t commands) {
  Exchange exchange(frame.size(), owed_ + commands - 1);
  if (limits.stop.stop_requested()) {
    error_ = Error{Errc::cancelled, concat({"a stop was requested before anything was sent to ", server_})};
    return exchange.delivery();
  }
  if (LeaseClock::now() >= limits.deadline) {
    error_ = Error{Errc::timed_out, concat({"the limit had passed before anything was sent to ", server_})};
    return exchange.delivery();
  }
  dead_ = true;  // until it is known better, as in send()
  if (owed_ == 0 && !reader_.empty()) {
    error_ =
        Error{Errc::bad_reply, concat({server_, " had sent something that nobody asked for; nothing was sent to it"})};
    return exchange.delivery();
  }
  const Io written = transport_->write(frame, limits);
  exchange.wrote(written.bytes);
  if (written.status != IoStatus::ok) {
    fail(written, exchange);
  } else {
    await(exchange, limits);
  }
  return exchange.delivery();
}

bool Connection::await(Exchange& exchange, const Limits& limits) {
  bool heard = false;
  for (;;) {
    switch (reader_.next()) {
      case ReplyReader::State::ready:
        if (!exchange.saw_reply()) continue;
        owed_ = 0;
        dead_ = false;
        return true;
      case ReplyReader::State::broken: no_reply(); return false;
      case ReplyReader::State::needs_more: break;
    }
    // Bytes that always come just in time must not carry a call past its limits.
    if (heard && limits.stop.stop_requested()) return fail({0, IoStatus::cancelled, {}}, exchange), false;
    if (heard && LeaseClock::now() >= limits.deadline) return fail({0, IoStatus::timed_out, {}}, exchange), false;
    std::array<char, 4'096> bytes;
    const Io got = transport_->read(bytes, limits);
    heard = heard || got.bytes > 0;
    if (got.bytes > 0) reader_.feed({bytes.data(), got.bytes});
    if (got.status != IoStatus::ok) {
      fail(got, exchange);
      return false;
    }
  }
}

void Connection::no_reply() {
  dead_ = true;
  error_ = Error{Errc::bad_reply, concat({server_, " answered something that is no reply (", reader_.trouble(),
                                          "). Is it a Redis or Valkey server?"})};
}

void Connection::fail(const Io& io, const Exchange& exchange) {
  // With part of a frame gone out the stream is beyond repair; with all of it gone the reply may still come.
  const bool whole = exchange.delivery() == Delivery::in_doubt;
  dead_ = !whole || (io.status != IoStatus::timed_out && io.status != IoStatus::cancelled);
  if (!dead_) owed_ = exchange.due();
  switch (io.status) {
    case IoStatus::timed_out:
      error_ = Error{Errc::timed_out, concat({server_, " did not answer within the limit"})};
      break;
    case IoStatus::cancelled:
      error_ = Error{Errc::cancelled, concat({"a stop was requested while waiting for ", server_})};
      break;
    case IoStatus::closed: error_ = Error{Errc::connection_closed, concat({server_, " closed the connection"})}; break;
    case IoStatus::failed:
    case IoStatus::ok:
      error_ = Error{io.error.category() == tls_category() ? Errc::tls_failed : Errc::connection_closed,
                     concat({"the connection to ", server_, " broke (", io.error.message(), ")"})};
  }
}

const Reply* Connection::hear(const Limits& limits) noexcept {
  try {
    bool waits = false;  // if not, all that is there is taken
    while (!dead_) {
      const ReplyReader::State state = reader_.next();
      if (state == ReplyReader::State::ready) return &reader_.reply();
      if (state == ReplyReader::State::broken) {
        no_reply();
        break;
      }
      const bool in_time = LeaseClock::now() < limits.deadline;
      if (waits && !in_time) break;  // bytes that always come just in time
      waits = in_time;
      std::array<char, 4'096> bytes;
      const Io got = transport_->read(bytes, limits);
      if (got.bytes > 0) reader_.feed({bytes.data(), got.bytes});
      if (got.status == IoStatus::timed_out || got.status == IoStatus::cancelled) break;
      if (got.status != IoStatus::ok) fail(got, Exchange(0, owed_));
    }
  } catch (...) {
    dead_ = true;
  }
  return nullptr;
}

const Reply* Connection::next_owed() noexcept {
  if (owed_ == 0) return nullptr;
  const Reply* const reply = hear({Deadline::min(), {}});
  if (reply != nullptr) --owed_;
  return reply;
}

bool Connection::settled() noexcept {
  while (next_owed() != nullptr) {
  }
  return dead_ || owed_ == 0;
}

std::optional<std::int64_t> Connection::server_time_at_most(Deadline now) const noexcept {
  if (!server_time_) return std::nullopt;
  return server_time_->micros +
         std::chrono::duration_cast<std::chrono::microseconds>(now - server_time_->before).count();
}

std::optional<Error> Connection::ask_time(const Limits& limits) {
  append_command(frame(), {"TIME"});
  const Deadline before = LeaseClock::now();
  if (call(frame_, limits) != Delivery::answered) return error_;
  if (reply().kind == Reply::Kind::array && reply().elements == 2) saw_time_reply(before);
  return std::nullopt;
}

void Connection::saw_time_reply(Deadline before) noexcept {
  const auto& parts = reply().items;
  saw_server_time(before, LeaseClock::now(), to_number(parts[0].text) * 1'000'000 + to_number(parts[1].text));
}

LeaseClock::duration Connection::server_time_error(Deadline now) const noexcept {
  if (!server_time_) return {};
  return server_time_->error + (now - server_time_->before) / 500;
}

void Connection::saw_server_time(Deadline before, Deadline after, std::int64_t micros) noexcept {
  server_time_ = ServerTime{before, micros, after - before};
}

}  // namespace v0
}  // namespace redlease
