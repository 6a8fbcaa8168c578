#include "redlease/wire/connection.hpp"

#include <array>
#include <charconv>
#include <span>
#include <utility>

#include "wire/server_errors.hpp"
#include "wire/tls_transport.hpp"

namespace redlease {
inline namespace v0 {

namespace {

constexpr std::size_t frame_room = 2'048;  // a renewal of the longest key and token fits

std::int64_t number(std::string_view digits) noexcept {
  std::int64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

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
  const Io written = transport_->write(out, limits);
  introduction.wrote(written.bytes);
  if (written.status != IoStatus::ok) {
    fail(written, introduction);
    return error_;
  }
  std::string refusal;  // the first error reply, which often says why the server then closes
  for (const Step step : std::span(steps).first(count)) {
    Exchange answer(0, 0);
    if (!await(answer, limits)) {
      if (!refusal.empty()) error_.detail += ". It had said: " + refusal;
      return error_;
    }
    if (!reply().is_error()) {
      if (step == time && reply().kind == Reply::Kind::array && reply().elements == 2) {
        const auto& parts = reply().items;
        saw_server_time(before, LeaseClock::now(), number(parts[0].text) * 1'000'000 + number(parts[1].text));
      }
      continue;
    }
    const ErrorReply meaning = classify(reply().text);
    if (refusal.empty()) refusal = reply().text;
    if (step == auth) {
      return Error{meaning.code == Errc::not_ready ? Errc::not_ready : Errc::denied,
                   server_ + " refused the user or password of the URL (" + reply().text +
                       "); nothing was sent after it. Check user, password and the user's ACL"};
    }
    if (step == select) {
      return Error{meaning.code == Errc::denied || meaning.code == Errc::not_ready ? meaning.code : Errc::unsupported,
                   server_ + " refused SELECT " + std::to_string(endpoint.db) + " (" + reply().text +
                       "); nothing was sent after it. Does the server have that database, and may the user select it?"};
    }
    const std::string_view word = reply().first_word();
    if (step == time && (word == "NOAUTH" || word == "DENIED" || meaning.code == Errc::not_ready)) {
      return Error{meaning.code, server_ + " lets nobody in (" + reply().text + "); nothing was executed. " +
                                     (meaning.code == Errc::denied ? "Does the URL lack a password?" : "It may pass")};
    }
  }
  return std::nullopt;
}

bool Connection::send(std::string_view frame, const Limits& limits) {
  if (dead_) return false;
  Exchange exchange(frame.size(), owed_);
  const Io written = transport_->write(frame, limits);
  exchange.wrote(written.bytes);
  if (exchange.delivery() == Delivery::not_executed) {
    fail(written, exchange);
    return false;
  }
  ++owed_;
  return true;
}

Delivery Connection::call(std::string_view frame, const Limits& limits) {
  Exchange exchange(frame.size(), owed_);
  if (limits.stop.stop_requested()) {
    error_ = Error{Errc::cancelled, "a stop was requested before anything was sent to " + server_};
    return exchange.delivery();
  }
  if (LeaseClock::now() >= limits.deadline) {
    error_ = Error{Errc::timed_out, "the limit had passed before anything was sent to " + server_};
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
  for (;;) {
    switch (reader_.next()) {
      case ReplyReader::State::ready:
        if (!exchange.saw_reply()) continue;
        owed_ = 0;
        return true;
      case ReplyReader::State::broken:
        dead_ = true;
        error_ = Error{Errc::bad_reply, server_ + " answered something that is no reply (" + reader_.trouble() +
                                            "). Is it a Redis or Valkey server?"};
        return false;
      case ReplyReader::State::needs_more: break;
    }
    std::array<char, 4'096> bytes;
    const Io got = transport_->read(bytes, limits);
    if (got.bytes > 0) reader_.feed({bytes.data(), got.bytes});
    if (got.status != IoStatus::ok) {
      fail(got, exchange);
      return false;
    }
  }
}

void Connection::fail(const Io& io, const Exchange& exchange) {
  // With part of a frame gone out the stream is beyond repair; with all of it gone the reply may still come.
  const bool whole = exchange.delivery() == Delivery::in_doubt;
  switch (io.status) {
    case IoStatus::timed_out: error_ = Error{Errc::timed_out, server_ + " did not answer within the limit"}; break;
    case IoStatus::cancelled:
      error_ = Error{Errc::cancelled, "a stop was requested while waiting for " + server_};
      break;
    case IoStatus::closed: error_ = Error{Errc::connection_closed, server_ + " closed the connection"}; break;
    case IoStatus::failed:
    case IoStatus::ok:
      error_ = Error{io.error.category() == tls_category() ? Errc::tls_failed : Errc::connection_closed,
                     "the connection to " + server_ + " broke (" + io.error.message() + ")"};
  }
  if (whole && (io.status == IoStatus::timed_out || io.status == IoStatus::cancelled)) {
    owed_ = exchange.due();
  } else {
    dead_ = true;
  }
}

bool Connection::settled() noexcept {
  try {
    Exchange rest(0, owed_ > 0 ? owed_ - 1 : 0);
    while (owed_ > 0 && !dead_ && !transport_->quiet()) {
      std::array<char, 4'096> bytes;
      const Io got = transport_->read(bytes, Limits{LeaseClock::now(), {}});
      if (got.bytes > 0) reader_.feed({bytes.data(), got.bytes});
      if (got.status == IoStatus::timed_out) break;
      dead_ = dead_ || got.status != IoStatus::ok;
      ReplyReader::State state{};
      while (owed_ > 0 && (state = reader_.next()) == ReplyReader::State::ready) --owed_;
      dead_ = dead_ || state == ReplyReader::State::broken;
    }
  } catch (...) {
    dead_ = true;
  }
  return dead_ || owed_ == 0;
}

std::optional<std::int64_t> Connection::server_time_at_most(Deadline now) const noexcept {
  if (!server_time_) return std::nullopt;
  return server_time_->micros +
         std::chrono::duration_cast<std::chrono::microseconds>(now - server_time_->before).count();
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
