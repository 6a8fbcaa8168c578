#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "cli/context.hpp"
#include "cli/doctor/finding.hpp"
#include "redlease/clock.hpp"
#include "redlease/wire/connection.hpp"

namespace redlease::cli::doctor {

/// What the command line asks for.
struct Terms {
  Millis ttl{30'000};
  Millis op_timeout{0};            ///< 0: as the library has it for this ttl
  std::string scratch_key;         ///< empty: a random one
  std::vector<std::string> nodes;  ///< further servers, which are to be independent of the first
  bool server_only{false};
};

/// One reading of the server's clock.
struct TimeSample {
  Deadline before, after;
  std::int64_t server;  ///< microseconds since its epoch
  std::int64_t here;    ///< the same of this host's wall clock, halfway between before and after
  LeaseClock::duration round_trip() const { return after - before; }
};

/// The answers of one server, asked for once. What could not be learnt is nothing, and trouble() says why.
class Exam {
 public:
  /// Throws Failure with the library's error if there is no server.
  Exam(const Context&, Terms, std::stop_token);
  ~Exam();
  Exam(const Exam&) = delete;
  Exam& operator=(const Exam&) = delete;

  const Context& context() const { return context_; }
  const Terms& terms() const { return terms_; }
  const Endpoint& endpoint() const { return endpoint_; }
  std::string user() const { return endpoint_.user.empty() ? "default" : endpoint_.user; }
  Millis op_timeout() const;
  std::stop_token stop() const { return stop_; }
  /// The whole name on the server, prefix included.
  std::string scratch_key() const { return context_.prefix() + terms_.scratch_key; }

  /// The reply, an error reply too; nothing if none came.
  std::optional<Reply> ask(std::span<const std::string> words);
  std::optional<Reply> ask(std::initializer_list<std::string> words) {
    return ask(std::span<const std::string>(words.begin(), words.size()));
  }
  /// The same on a connection of its own, closed behind it.
  std::optional<Reply> ask_apart(std::span<const std::string> words);
  /// One reply for each command, or nothing at all.
  std::optional<std::vector<Reply>> ask_all(const std::vector<std::vector<std::string>>& commands);
  /// The reply if it is of that kind; else trouble() names what came instead.
  std::optional<Reply> ask_for(Reply::Kind, std::initializer_list<std::string> words);

  /// A field of INFO.
  std::optional<std::string> info(const std::string& field);
  std::optional<std::int64_t> number(const std::string& field);
  const std::map<std::string, std::string>& info() { return learn_info(), info_; }
  /// The same, or the setting.
  std::optional<std::string> fact(const std::string& field, const std::string& setting);
  /// A setting, by CONFIG GET.
  std::optional<std::string> config(const std::string& name);

  std::optional<TimeSample> time();
  /// The one of the shortest round trip.
  std::optional<TimeSample> best_time(int of);
  /// Taken when the examination began.
  const std::optional<TimeSample>& first_time() const { return first_time_; }

  const std::string& trouble() const { return trouble_.why; }
  void set_trouble(std::string why) { trouble_ = {std::move(why), {}}; }
  /// For want of what trouble() says; with the rule that would let this user ask, if that is what is missing.
  Verdict unknown(const std::string& before = {}) const;
  /// How many commands were refused by ACL: so much stands in the server's ACL LOG now.
  std::size_t refusals() const { return refusals_; }

  /// Behind every grant of the scratch lease: its helpers expire in a minute, should this process be killed.
  void expire_scratch();
  bool wrote_scratch() const { return wrote_scratch_; }
  /// Also when a stop was requested.
  bool remove_scratch();

  // What one check leaves to the next.
  bool keys_refused{false};  ///< whatever is asked of them
  bool may_lease{false};     ///< every rule without which there are no leases is there
  bool may_queue{false};
  std::vector<LeaseClock::duration> renewals;  ///< how long each took
  /// The strings under the prefix, as far as the bounds of a search go.
  struct Keys {
    std::vector<std::string> names;  ///< sorted
    bool complete{};
  };
  std::optional<Keys> keys;

 private:
  void insist_on_free_scratch();
  std::vector<std::string> scratch_names() const;
  Connection* connection();
  Limits limits() const;
  void learn_info();
  void count(const Reply&);
  void silent(const Connection&);

  const Context& context_;
  Terms terms_;
  const Endpoint endpoint_;
  std::stop_token stop_;
  Deadline end_;
  std::unique_ptr<Connection> connection_;
  int silences_{0};
  bool asked_info_{false};
  std::map<std::string, std::string> info_;
  std::optional<TimeSample> first_time_;
  struct Trouble {
    std::string why, rule;  // and the rule of the ACL that is missing, if that is it
  };
  std::optional<Trouble> no_info_, no_config_;
  Trouble trouble_;
  std::size_t refusals_{0};
  bool wrote_scratch_{false};
};

/// "field:value" lines, as INFO has them.
std::map<std::string, std::string> info_fields(std::string_view);
std::optional<std::int64_t> to_integer(const std::optional<std::string>&);

}  // namespace redlease::cli::doctor
