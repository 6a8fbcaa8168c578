#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "redlease/plan/renewal_plan.hpp"
#include "service/orphans.hpp"

namespace redlease::testing_support {

// splitmix64
class Dice {
 public:
  explicit Dice(std::uint64_t seed) noexcept : state_(seed) {}
  std::uint64_t next() noexcept {
    std::uint64_t z = state_ += 0x9E37'79B9'7F4A'7C15;
    z = (z ^ (z >> 30)) * 0xBF58'476D'1CE4'E5B9;
    z = (z ^ (z >> 27)) * 0x94D0'49BB'1331'11EB;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) noexcept { return next() % n; }
  bool chance(unsigned percent) noexcept { return below(100) < percent; }
  LeaseClock::duration upto(LeaseClock::duration most) noexcept {
    return LeaseClock::duration(below(static_cast<std::uint64_t>(most.count()) + 1));
  }

 private:
  std::uint64_t state_;
};

// Runs at a rate of its own.
struct WorldClock {
  double rate{1};
  Deadline read(Deadline real) const noexcept {
    return Deadline(LeaseClock::duration(std::llround(static_cast<double>(real.time_since_epoch().count()) * rate)));
  }
  // The first moment at which it shows that.
  Deadline when(Deadline shown) const noexcept {
    auto real = Deadline(LeaseClock::duration(
        static_cast<std::int64_t>(static_cast<double>(shown.time_since_epoch().count()) / rate) - 4));
    while (read(real) < shown) real += LeaseClock::duration(1);
    return real;
  }
};

enum class Weather : std::uint8_t { calm, slow_network, stalls, storm, forgetful };
constexpr std::size_t weathers = 5;

// How often what happened: worlds in which nothing happens prove nothing.
struct Tally {
  std::uint64_t worlds{}, events{}, grants{}, renewals{}, renewed{}, late_counted{}, given_up{}, asked{}, stalls{},
      cuts{}, refused{}, unsent{}, restarts{}, forgotten{}, no_connection{}, withdrawn{}, not_withdrawn{}, released{},
      lost_while_stalled{};
  std::array<std::uint64_t, 4> lost{};  // by cause
};

// Some clients contend for one key on one server, in virtual time; everything follows from the seed. Each client drives
// a RenewalPlan and Orphans as the Keeper does. After every event the invariants are checked: docs/proof.md.
class World {
 public:
  // `trace`: takes what happens, line by line.
  World(std::uint64_t seed, Tally&, std::vector<std::string>* trace = nullptr);
  // What did not hold; empty if all did.
  std::string run();

 private:
  using Span = LeaseClock::duration;
  enum class Verb : std::uint8_t { acquire, renew, release };
  enum class Said : std::uint8_t { done, not_ours, unknown, unavailable, again };
  struct Message {
    Verb verb{};
    Said said{};
    LossCause cause{};
    std::uint32_t client{}, connection{}, epoch{}, number{};
    std::uint64_t token{}, ticket{};
    Deadline sent{};       // on the client's clock
    Deadline not_after{};  // on the server's
  };
  enum class Kind : std::uint8_t { arrival, reply, wake, connected, trouble };
  struct Event {
    Deadline at;
    std::uint64_t order;
    Kind kind;
    Message message;
    bool operator<(const Event& e) const noexcept { return at != e.at ? at > e.at : order > e.order; }
  };
  struct Connection {
    std::uint32_t epoch{};
    bool cut{false};
    Deadline to{}, back{};  // what goes later arrives later
  };
  struct Client {
    std::uint32_t id{};
    WorldClock clock;
    std::optional<RenewalPlan> plan;  // of the lease held, or lost last
    Orphans orphans;
    std::vector<Message> inbox;
    std::vector<Connection> connections;
    bool connected{false}, connecting{false}, due{false}, idle{true};
    Deadline stalled_until{}, woken_at{Deadline::max()};
    Deadline connect_at{}, oldest_limit{Deadline::max()};  // of what is unanswered on the latest connection
    // Of the acquisition or the lease.
    std::uint64_t token{0};
    Deadline sent{}, limit{Deadline::max()}, spent_by{}, try_at{}, work_until{}, begun{};
    std::uint32_t renewals{0};
    std::optional<Deadline> asked;
    bool seen_lost{true};
  };

  // world.cpp: the network and the server
  void push(Deadline at, Kind, const Message&);
  Span delay();
  void send(Client&, Message);
  void arrive(Message);
  void carry_out(Message&);
  void grant(const Message&);
  void trouble();
  bool serving() const noexcept { return now_ >= paused_until_; }

  // world_client.cpp: what a client does
  void step(Client&, bool no_connection);
  void saw(Client&, const Message&, Deadline now);
  void saw_acquired(Client&, const Message&, Deadline now);
  void saw_of_orphan(Client&, const Message&, Deadline now);
  void fire(Client&, Deadline now);
  void signal(Client&, Deadline now);
  void lose(Client&, LossCause, Deadline now);
  void send_due(Client&, Deadline now);
  bool ready(Client&, Deadline now);
  void contend(Client&, Deadline now);
  void go_idle(Client&, Deadline now);
  void plan_wake(Client&);

  // world_checks.cpp: what must hold
  bool held(const Client&) const noexcept;
  void check();
  void check_grant(std::uint64_t fence);
  void check_renewal(const Client&, Deadline now);
  void check_ask(const Client&, Deadline now);
  void check_loss(const Client&, LossCause, Deadline now);
  void check_withdrawn(std::uint64_t token);
  void broken(std::string what);
  void note(const Client*, const char* what, std::uint64_t number = 0);

  Dice dice_;
  Tally& tally_;
  std::vector<std::string>* trace_;
  Weather weather_;
  KeepTerms terms_;
  Span max_hold_{}, longest_delay_{};
  WorldClock server_clock_;
  std::vector<Client> clients_;
  std::priority_queue<Event> events_;
  std::uint64_t order_{0}, tokens_{0};
  Deadline now_{}, end_{};
  // The server.
  std::uint64_t value_{0}, fence_{0}, last_fence_{0};
  Deadline expiry_{}, paused_until_{};
  std::uint32_t epoch_{0};
  bool forgot_{false};
  std::vector<std::uint64_t> withdrawn_;  // said to be gone for good
  std::string broken_;
};

}  // namespace redlease::testing_support
