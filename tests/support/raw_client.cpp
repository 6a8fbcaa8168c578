#include "support/raw_client.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>

namespace redlease {
inline namespace v0 {

RawClient::RawClient(const ServerAddress& address) : fd_(connect_to(address)) {}

RawReply RawClient::command(const std::vector<std::string>& argv) {
  send(argv);
  return receive();
}

void RawClient::send(const std::vector<std::string>& argv) { send_all(fd_, raw_command(argv)); }

RawReply RawClient::receive(Millis limit) {
  const Deadline deadline = deadline_in(limit);
  while (true) {
    if (auto reply = reader_.next()) return *std::move(reply);
    const auto left = std::chrono::ceil<Millis>(deadline - LeaseClock::now());
    pollfd wait{fd_.get(), POLLIN, 0};
    const int capped = static_cast<int>(std::clamp(left, Millis(0), Millis(1000)).count());
    const int ready = ::poll(&wait, 1, capped);
    if (ready < 0 && errno != EINTR) throw_errno("poll");
    if (ready <= 0) {
      if (left <= Millis(0)) throw std::runtime_error("no reply within " + std::to_string(limit.count()) + " ms");
      continue;
    }
    std::array<char, 16384> bytes;
    const ssize_t n = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (n < 0) throw_errno("recv");
    if (n == 0) throw std::runtime_error("the server closed the connection");
    reader_.feed({bytes.data(), static_cast<std::size_t>(n)});
  }
}

RawReply RawClient::expect(RawReply::Kind kind, const std::vector<std::string>& argv) {
  RawReply reply = command(argv);
  if (reply.kind != kind) throw std::runtime_error(argv.front() + " answered " + to_string(reply));
  return reply;
}

void RawClient::auth(const std::string& password) { expect(RawReply::Kind::status, {"AUTH", password}); }

void RawClient::auth(const std::string& user, const std::string& password) {
  expect(RawReply::Kind::status, {"AUTH", user, password});
}

void RawClient::set(const std::string& key, const std::string& value) {
  expect(RawReply::Kind::status, {"SET", key, value});
}

std::optional<std::string> RawClient::get(const std::string& key) {
  const RawReply reply = command({"GET", key});
  if (reply.kind == RawReply::Kind::nil) return std::nullopt;
  if (reply.kind != RawReply::Kind::text) throw std::runtime_error("GET answered " + to_string(reply));
  return reply.text;
}

long long RawClient::pttl(const std::string& key) { return expect(RawReply::Kind::integer, {"PTTL", key}).integer; }

bool RawClient::exists(const std::string& key) { return expect(RawReply::Kind::integer, {"EXISTS", key}).integer == 1; }

bool RawClient::del(const std::string& key) { return expect(RawReply::Kind::integer, {"DEL", key}).integer == 1; }

void RawClient::flushall() { expect(RawReply::Kind::status, {"FLUSHALL"}); }

void RawClient::config_set(const std::string& name, const std::string& value) {
  expect(RawReply::Kind::status, {"CONFIG", "SET", name, value});
}

std::vector<std::string> RawClient::keys(const std::string& pattern) {
  std::vector<std::string> result;
  for (RawReply& key : expect(RawReply::Kind::array, {"KEYS", pattern}).elements) result.push_back(std::move(key.text));
  std::sort(result.begin(), result.end());
  return result;
}

std::string RawClient::info(const std::string& field) {
  std::string text = "\n";
  text += expect(RawReply::Kind::text, {"INFO", "everything"}).text;
  const std::size_t at = text.find("\n" + field + ":");
  if (at == std::string::npos) throw std::runtime_error("INFO has no field " + field);
  const std::size_t begin = at + field.size() + 2;
  return text.substr(begin, text.find('\r', begin) - begin);
}

void RawClient::shut_down() { ::shutdown(fd_.get(), SHUT_RDWR); }

}  // namespace v0
}  // namespace redlease
