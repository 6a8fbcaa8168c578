#include "redlease/wire/endpoint.hpp"

#include <arpa/inet.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "concat.hpp"

namespace redlease {
inline namespace v0 {
namespace {

// No text of the URL is shown unless it cannot be a piece of a password: one with a raw '/', '?' or ':' in it, or an
// '@' forgotten, makes pieces of it look like a port, a database or a path.
[[noreturn]] void refuse(const std::string& what) {
  throw std::invalid_argument(
      concat({"redlease: not a server URL: ", what,
              ". Write redis://[user[:password]@]host[:port][/db], rediss:// likewise (TLS), or "
              "unix://[user[:password]@]/path[?db=n]; for example redis://127.0.0.1:6379/0"}));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string percent_decoded(std::string_view text, const char* where) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      refuse(concat({"a '%' in the ", where, " is not followed by two hexadecimal digits (write % itself as %25)"}));
    }
    if (high == 0 && low == 0) refuse("%00 in the " + std::string(where));
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

unsigned db_number(std::string_view text) {
  const auto db = number<unsigned>(text);
  if (!db || *db > 0x7fffffffU) refuse("the database is not a number (0, 1, 2, …)");
  return *db;
}

void read_userinfo(std::string_view text, Endpoint& endpoint) {
  const auto colon = text.find(':');
  endpoint.user = percent_decoded(text.substr(0, colon), "user");
  if (colon != text.npos) endpoint.password = percent_decoded(text.substr(colon + 1), "password");
}

// Returns the part before the '?'. The only key there is, db, is known to unix:// alone.
std::string_view read_query(std::string_view text, Endpoint& endpoint) {
  const auto mark = text.find('?');
  if (mark == text.npos) return text;
  bool db_seen = false;
  for (std::string_view rest = text.substr(mark + 1);;) {
    const auto end = std::min(rest.find('&'), rest.size());
    const std::string_view item = rest.substr(0, end);
    const std::string_view key = item.substr(0, item.find('='));
    if (key.empty()) refuse("the query after '?' has an empty key");
    if (key != "db") refuse("unknown query key '" + std::string(key.substr(0, 40)) + "'");
    if (endpoint.kind != Endpoint::Kind::unix_socket) {
      refuse("unknown query key 'db' (the database of this scheme stands after a slash, as in redis://host/1)");
    }
    if (db_seen) refuse("the query gives db twice");
    db_seen = true;
    endpoint.db = db_number(item.substr(std::min(item.size(), key.size() + 1)));
    if (end == rest.size()) return text.substr(0, mark);
    rest.remove_prefix(end + 1);
  }
}

std::string ipv6_literal(std::string_view text) {
  std::string host = percent_decoded(text, "host");
  const auto zone = host.find('%');
  in6_addr ignored{};
  if (::inet_pton(AF_INET6, host.substr(0, zone).c_str(), &ignored) != 1 || zone == host.size() - 1) {
    refuse("what stands in brackets is not an IPv6 address");
  }
  return host;
}

void read_host_and_port(std::string_view text, Endpoint& endpoint) {
  std::string_view port;
  bool port_given = false;
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == text.npos) refuse("the '[' of an IPv6 address has no ']'");
    endpoint.host = ipv6_literal(text.substr(1, end - 1));
    port = text.substr(end + 1);
    if (!port.empty() && port[0] != ':') refuse("after ']' only a port may follow, as in [::1]:6379");
    port_given = !port.empty();
    if (port_given) port.remove_prefix(1);
  } else {
    const auto colon = text.find(':');
    endpoint.host = text.substr(0, colon);
    port_given = colon != text.npos;
    if (port_given) port = text.substr(colon + 1);
    if (port.find(':') != port.npos) {
      refuse(
          "more than one ':' after the user and password (an IPv6 address needs brackets, as in redis://[::1]:6379)");
    }
    if (endpoint.host.empty()) refuse("the host is missing");
    const auto allowed = [](char c) { return is_digit(c) || is_letter(c) || c == '.' || c == '-' || c == '_'; };
    if (endpoint.host.size() > 253 || !std::ranges::all_of(endpoint.host, allowed)) {
      refuse("the host is not a name or an address");
    }
  }
  if (!port_given) return;
  const auto value = number<std::uint16_t>(port);
  if (!value || *value == 0) refuse("the port is not a number from 1 to 65535 (was an '@' before the host forgotten?)");
  endpoint.port = *value;
}

void read_tcp(std::string_view rest, Endpoint& endpoint) {
  const auto authority_end = std::min(rest.find_first_of("/?"), rest.size());
  std::string_view authority = rest.substr(0, authority_end);
  std::string_view tail = rest.substr(authority_end);
  if (tail.find('@') != tail.npos) {
    refuse("an '@' after the host (in user and password, write '/' as %2F, '?' as %3F and '@' as %40)");
  }
  if (const auto at = authority.rfind('@'); at != authority.npos) {
    read_userinfo(authority.substr(0, at), endpoint);
    authority.remove_prefix(at + 1);
  }
  read_host_and_port(authority, endpoint);
  tail = read_query(tail, endpoint);
  if (tail.size() > 1) endpoint.db = db_number(tail.substr(1));
  const bool bracketed = endpoint.host.find(':') != endpoint.host.npos;
  endpoint.display =
      concat({endpoint.kind == Endpoint::Kind::tls ? "rediss://" : "redis://", bracketed ? "[" : "", endpoint.host,
              bracketed ? "]:" : ":", std::to_string(endpoint.port), "/", std::to_string(endpoint.db)});
}

void read_unix(std::string_view rest, Endpoint& endpoint) {
  const auto slash = rest.find('/');
  if (slash == rest.npos) refuse("the path of the socket is missing (three slashes, as in unix:///run/redis.sock)");
  if (const std::string_view authority = rest.substr(0, slash); !authority.empty()) {
    if (authority.back() != '@') {
      refuse(
          "the path of a unix socket comes behind three slashes, as in unix:///run/redis.sock; only user:password@ may "
          "stand before it (and a '/' in them as %2F)");
    }
    read_userinfo(authority.substr(0, authority.size() - 1), endpoint);
  }
  const std::string_view path = read_query(rest.substr(slash), endpoint);
  endpoint.path = percent_decoded(path, "path");
  if (endpoint.path == "/") refuse("the path of the socket is missing, as in unix:///run/redis.sock");
  if (constexpr std::size_t most = sizeof(sockaddr_un{}.sun_path) - 1; endpoint.path.size() > most) {
    refuse(concat({"the path of the socket has ", std::to_string(endpoint.path.size()), " bytes, and the system takes ",
                   std::to_string(most)}));
  }
  // As it was written, so that an escaped line end stays escaped.
  endpoint.display = concat({"unix://", path, "?db=", std::to_string(endpoint.db)});
}

}  // namespace

Endpoint parse_endpoint(std::string_view url) {
  const auto unfit = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f'; };
  if (std::ranges::any_of(url, unfit)) refuse("it holds a space, a line end or a control character");

  const auto colon = url.find("://");
  const std::string_view scheme = url.substr(0, colon);
  const auto in_schemes = [](char c) { return is_digit(c) || is_letter(c) || c == '+' || c == '.' || c == '-'; };
  if (colon == url.npos || scheme.empty() || scheme.size() > 40 || !std::ranges::all_of(scheme, in_schemes)) {
    refuse("it does not begin with redis://, rediss://, unix:// or memory:");
  }

  Endpoint endpoint;
  const std::string_view rest = url.substr(colon + 3);
  if (scheme == "redis") {
    read_tcp(rest, endpoint);
  } else if (scheme == "rediss") {
    endpoint.kind = Endpoint::Kind::tls;
    read_tcp(rest, endpoint);
  } else if (scheme == "unix") {
    endpoint.kind = Endpoint::Kind::unix_socket;
    read_unix(rest, endpoint);
  } else if (scheme.starts_with("redis+sentinel") || scheme.starts_with("redis+cluster") ||
             scheme.starts_with("rediss+sentinel") || scheme.starts_with("rediss+cluster") || scheme == "quorum") {
    refuse("the scheme '" + std::string(scheme) + "' is not supported by this version yet");
  } else {
    refuse("unknown scheme '" + std::string(scheme) + "'");
  }
  return endpoint;
}

}  // namespace v0
}  // namespace redlease
