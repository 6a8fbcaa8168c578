#include "cli/context.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

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
                  fmt::format("no password could be read from {}: it is empty, or no file that can be read", file));
  }
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

// Where in a URL "user:password@" stands; npos: not there. `begin` is 0 if the URL has no place for it.
struct Authority {
  std::size_t begin{0}, colon{std::string::npos}, at{std::string::npos};
};

Authority authority_of(const std::string& url) {
  Authority out;
  const auto scheme = url.find("://");
  if (scheme == url.npos) return out;
  out.begin = scheme + 3;
  const auto at = url.rfind('@', std::min(url.find('/', out.begin), url.size()));
  if (at == url.npos || at < out.begin) return out;
  out.at = at;
  const auto colon = url.find(':', out.begin);
  if (colon < at) out.colon = colon;
  return out;
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
  const Authority authority = authority_of(url);
  if (authority.begin == 0) {
    throw Failure(Exit::usage, "usage",
                  "a password is given, but the URL takes none (redis://, rediss:// and unix:// do)");
  }
  if (authority.colon != url.npos) {
    throw Failure(Exit::usage, "usage", "a password is given twice: in the URL, and in a file or REDLEASE_PASSWORD");
  }
  const bool has_user = authority.at != url.npos;
  std::string out = url;
  return out.insert(has_user ? authority.at : authority.begin, ":" + percent_encoded(password) + (has_user ? "" : "@"));
}

std::string without_password(const std::string& url) {
  const Authority authority = authority_of(url);
  if (authority.colon == url.npos) return url;
  const bool has_user = authority.colon > authority.begin;
  return url.substr(0, authority.colon) + url.substr(authority.at + (has_user ? 0 : 1));
}

Context::Context(CLI::App& app, const Inherited& given) : inherited(given) {
  const std::string group = "Every command";
  app.add_option("--url", url_,
                 "redis://[user[:password]@]host[:port][/db], rediss://…, unix:///path[?db=n] or memory:")
      ->envname("REDLEASE_URL")
      ->capture_default_str()
      ->type_name("URL")
      ->group(group);
  app.add_option("--password-file", password_file_, "A file whose first line is the password; else REDLEASE_PASSWORD")
      ->envname("REDLEASE_PASSWORD_FILE")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--prefix", prefix_, "Put before every key")
      ->envname("REDLEASE_PREFIX")
      ->type_name("TEXT")
      ->group(group);
  app.add_option("--tls-ca", tls_.ca_file, "rediss://: trust these authorities (PEM) instead of the system's")
      ->envname("REDLEASE_TLS_CA")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--tls-cert", tls_.cert_file, "rediss://: present this certificate (PEM)")
      ->envname("REDLEASE_TLS_CERT")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--tls-key", tls_.key_file, "rediss://: its key (PEM)")
      ->envname("REDLEASE_TLS_KEY")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--tls-name", tls_.server_name,
                 "rediss://: the name that the server's certificate must have, if not the host's")
      ->envname("REDLEASE_TLS_NAME")
      ->type_name("NAME")
      ->group(group);
  app.add_flag("--json", json_, "Print one JSON document (docs/tool.md)")->group(group);
  app.add_flag("-q,--quiet", quiet_, "Say nothing but results and errors")->group(group);
}

std::string Context::url_with_password() const {
  const char* password = std::getenv("REDLEASE_PASSWORD");
  // An empty one is what a unit file without the secret leaves behind.
  const bool in_environment = password != nullptr && *password != '\0';
  if (in_environment && !password_file_.empty()) {
    throw Failure(Exit::usage, "usage", "a password is given twice: in a file, and in REDLEASE_PASSWORD");
  }
  if (!password_file_.empty()) return with_password(url_, first_line(password_file_));
  return in_environment ? with_password(url_, password) : url_;
}

// Throws Failure that says where the URL came from. It may hold a password, so it is not repeated.
Endpoint Context::parsed(const std::string& url) const {
  try {
    return parse_endpoint(url);
  } catch (const std::invalid_argument& refused) {
    const char* variable = std::getenv("REDLEASE_URL");
    throw Failure(Exit::usage, "usage",
                  fmt::format("{}: {}", variable != nullptr && url_ == variable ? "REDLEASE_URL" : "--url",
                              without_speaker(refused.what())));
  }
}

Client Context::client(ClientOptions base) const {
  if (!in_memory()) (void)parsed(url_with_password());
  base.name = "redlease-cli";
  base.key_prefix = prefix_;
  base.tls = tls_;
  return Client(in_memory() ? url_ : url_with_password(), std::move(base));
}

std::map<std::string, std::string> Context::environment() const {
  std::map<std::string, std::string> out;
  const char* inherited_url = std::getenv("REDLEASE_URL");
  if (inherited_url == nullptr || url_ != inherited_url) out["REDLEASE_URL"] = without_password(url_);
  out["REDLEASE_PREFIX"] = prefix_;  // an empty one too: another may be inherited
  if (!tls_.server_name.empty()) out["REDLEASE_TLS_NAME"] = tls_.server_name;
  for (const auto& [name, file] : {std::pair{"REDLEASE_PASSWORD_FILE", &password_file_},
                                   {"REDLEASE_TLS_CA", &tls_.ca_file},
                                   {"REDLEASE_TLS_CERT", &tls_.cert_file},
                                   {"REDLEASE_TLS_KEY", &tls_.key_file}}) {
    if (!file->empty()) out[name] = std::filesystem::absolute(*file).string();
  }
  return out;
}

void Context::insist_on_a_server() const {
  if (!in_memory()) return;
  throw Failure(Exit::usage, "usage",
                "memory: leases end with this process and exclude nobody else: give --url or REDLEASE_URL");
}

Endpoint Context::endpoint() const {
  insist_on_a_server();
  Endpoint endpoint = parsed(url_with_password());
  endpoint.client_name = "redlease-cli";
  endpoint.tls = tls_;
  return endpoint;
}

std::string Context::server() const { return in_memory() ? url_ : parsed(url_).display; }

void Context::print_json(const Json& document) {
  print(document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void Context::print_json_error(const std::string& code, const std::string& message) const {
  if (json_) print_json({{"error", {{"code", code}, {"message", message}}}});
}

void Context::remark(std::string_view text) const {
  if (!quiet_) print_error(text);
}

}  // namespace redlease::cli
