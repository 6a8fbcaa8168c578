#pragma once
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/inherited.hpp"
#include "redlease/client.hpp"
#include "redlease/wire/endpoint.hpp"

namespace CLI {
class App;
}

namespace redlease::cli {

using Json = nlohmann::ordered_json;

/// What the command line says to every command, and how each speaks.
class Context {
 public:
  /// Adds the options that every command knows.
  Context(CLI::App&, const Inherited&);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Commands set it while the command line is read; main() runs it.
  std::function<int()> action;
  /// What stood behind "--" on the command line of run, word for word.
  std::vector<std::string> command;
  const Inherited& inherited;

  /// How to reach the server; `base` brings what a command wants besides. Throws Failure (usage) for what is flawed.
  Client client(ClientOptions base = {}) const;
  /// The same for the wire layer. `memory:` is a Failure (usage): there is no server.
  Endpoint endpoint() const;
  /// Throws Failure (usage) for `memory:`, where there is nothing to look at and nothing that could last.
  void insist_on_a_server() const;
  /// `memory:` or `memory:name`: leases that end with this process.
  bool in_memory() const { return url_.starts_with("memory:"); }
  /// What a command that is run needs to find the same server and the same keys. A password that stood in --url is not
  /// handed on, since there are more eyes on a child's environment.
  std::map<std::string, std::string> environment() const;
  /// For people: the URL without user and password.
  std::string server() const;
  const std::string& prefix() const { return prefix_; }

  bool json() const { return json_; }
  bool quiet() const { return quiet_; }
  /// One JSON document and a line end, on stdout. What is no UTF-8 is replaced.
  static void print_json(const Json&);
  /// With --json, what a command that fails prints.
  void print_json_error(const std::string& code, const std::string& message) const;
  /// For people, on stderr and not with --quiet. A line end is added.
  void remark(std::string_view) const;

 private:
  std::string url_with_password() const;
  Endpoint parsed(const std::string& url) const;

  std::string url_{"redis://127.0.0.1:6379"};
  std::string password_file_;
  std::string prefix_;
  TlsOptions tls_;
  bool json_{false}, quiet_{false};
};

/// The URL with a password put in, percent-encoded. Throws Failure (usage) if it has one already.
std::string with_password(const std::string& url, std::string_view password);

/// The URL without a password, if it has one; the user stays.
std::string without_password(const std::string& url);

}  // namespace redlease::cli
