#include "cli/context.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "cli/duration.hpp"
#include "cli/exit_code.hpp"
#include "cli/output.hpp"

namespace redlease::cli {
namespace {

// The first line, without its end. One that others may read is used all the same: on a shared machine the group often
// has to.
std::string first_line(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string line;
  if (!in || !std::getline(in, line)) {
    throw Failure(Exit::usage, "usage",
                  fmt::format("no password could be read from {}: the file is {}", file,
                              in.is_open() ? "empty" : "not readable"));
  }
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace

std::string with_password(const std::string& url, std::string_view password) {
  const auto scheme = url.find("://");
  if (scheme == url.npos) {
    throw Failure(Exit::usage, "usage",
                  "a password is given, but the URL takes none (redis://, rediss:// and unix:// do)");
  }
  const std::size_t begin = scheme + 3;
  const std::size_t end = std::min(url.find('/', begin), url.size());
  const auto at = url.rfind('@', end);
  const bool has_user = at != url.npos && at >= begin;
  if (has_user && url.substr(begin, at - begin).find(':') != url.npos) {
    throw Failure(Exit::usage, "usage", "a password is given twice: in the URL, and in a file or REDLEASE_PASSWORD");
  }
  std::string out = url;
  return out.insert(has_user ? at : begin, ":" + percent_encoded(password) + (has_user ? "" : "@"));
}

Context::Context(CLI::App& app) {
  const std::string group = "Every command";
  app.add_option("--url", url_,
                 "redis://[user[:password]@]host[:port][/db], rediss://…, unix:///path[?db=n] or memory:")
      ->envname("REDLEASE_URL")
      ->capture_default_str()
      ->type_name("URL")
      ->group(group);
  app.add_option("--password-file", password_file_, "A file whose first line is the password; else REDLEASE_PASSWORD")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--prefix", prefix_, "Put before every key")
      ->envname("REDLEASE_PREFIX")
      ->type_name("TEXT")
      ->group(group);
  app.add_option("--tls-ca", tls_.ca_file, "rediss://: trust these authorities (PEM) instead of the system's")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--tls-cert", tls_.cert_file, "rediss://: present this certificate (PEM)")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--tls-key", tls_.key_file, "rediss://: its key (PEM)")->type_name("FILE")->group(group);
  app.add_option("--tls-name", tls_.server_name,
                 "rediss://: the name that the server's certificate must have, if not the host's")
      ->type_name("NAME")
      ->group(group);
  app.add_flag("--json", json_, "Print one JSON document (docs/tool.md)")->group(group);
  app.add_flag("-q,--quiet", quiet_, "Say nothing but results and errors")->group(group);
}

std::string Context::url_with_password() const {
  if (!password_file_.empty()) return with_password(url_, first_line(password_file_));
  // An empty one is what a unit file without the secret leaves behind.
  if (const char* password = std::getenv("REDLEASE_PASSWORD"); password != nullptr && *password != '\0') {
    return with_password(url_, password);
  }
  return url_;
}

Client Context::client(ClientOptions base) const {
  base.name = "redlease-cli";
  base.key_prefix = prefix_;
  base.tls = tls_;
  return Client(in_memory() ? url_ : url_with_password(), std::move(base));
}

Endpoint Context::endpoint() const {
  if (in_memory()) {
    throw Failure(Exit::usage, "usage",
                  "memory: leases end with this process, so there is nothing to look at: give --url or REDLEASE_URL");
  }
  Endpoint endpoint = parse_endpoint(url_with_password());
  endpoint.client_name = "redlease-cli";
  endpoint.tls = tls_;
  return endpoint;
}

std::string Context::server() const { return in_memory() ? url_ : parse_endpoint(url_).display; }

void Context::print_json(const Json& document) {
  print(document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void Context::remark(std::string_view text) const {
  if (!quiet_) fmt::print(stderr, "redlease: {}\n", text);
}

CLI::Option* add_duration(CLI::App& app, const std::string& names, Millis& into, const std::string& help,
                          std::string_view word) {
  const auto read = [&into, names, word](const CLI::results_t& given) {
    const std::string& text = given.back();
    if (!word.empty() && text == word) return into = forever, true;
    const auto duration = parse_duration(text);
    if (!duration) {
      throw CLI::ValidationError(names, fmt::format("'{}' is not a duration: write 250ms, 10s, 5m, 1h30m{}{}", text,
                                                    word.empty() ? "" : " or ", word));
    }
    return into = *duration, true;
  };
  return app.add_option(names, read, help)->type_name(word.empty() ? "DURATION" : "DURATION|" + std::string(word));
}

}  // namespace redlease::cli
