#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <queue>
#include <string>
#include <vector>

#include "queue_server.hpp"
#include "world.hpp"

namespace redlease::testing_support {

// Each has the faults of its kind alone, but storm, which has all, and stepped, in which the server's clock jumps and
// the network is good.
enum class QueueWeather : std::uint8_t { calm, network, wakes, clients, server, storm, stepped };
constexpr std::size_t queue_weathers = 7;

// How often what happened: worlds in which nothing happens prove nothing.
struct QueueTally {
  std::uint64_t worlds{}, events{}, asked{}, placed{}, granted{}, heard{}, believed{}, not_believed{}, hinted{}, kept{},
      held{}, too_late{}, expired{}, renewed{}, gave_up{}, stopped{}, left{}, doubtful{}, too_old{}, retired{},
      withdrawn{}, not_withdrawn{}, crashes{}, half_open{}, stalls{}, cuts{}, refused{}, wakes_lost{}, wakes_late{},
      wakes_twice{}, inboxes_killed{}, no_inbox{}, no_publish{}, no_count{}, queues_lost{}, pauses{}, restarts{},
      forgotten{}, barged{}, passed_by{}, steps{}, quiet{};
};

// Some clients wait for one lease at one server, again and again, in virtual time; everything follows from the seed.
// Each does what its WaitPlan says as Wait does. After every event the invariants are checked: docs/proof.md.
class QueueWorld {
 public:
  // `trace`: takes what happens, line by line.
  QueueWorld(std::uint64_t seed, QueueTally&, std::vector<std::string>* trace = nullptr);
  // What did not hold; empty if all did.
  std::string run();

 private:
  using Span = LeaseClock::duration;
  using Token = QueueServer::Token;
  using Inbox = QueueServer::Inbox;
  enum class Verb : std::uint8_t { acquire, release, leave, renew, subscribe };
  enum class Said : std::uint8_t { done, not_ours, cut, unavailable };
  struct Message {
    Verb verb{};
    Said said{};
    std::uint32_t client{}, life{}, connection{}, epoch{}, number{};
    Token token{};
    std::uint64_t ticket{};
    Deadline sent{};  // on the client's clock
    QueueServer::Question question{};
    QueueServer::Answer answer{};
    std::uint32_t granted_in{};  // the server's memory of then
  };
  enum class Kind : std::uint8_t { arrival, reply, wake_up, inbox_end, inbox_seen_lost, wake, trouble };
  struct Event {
    Deadline at;
    std::uint64_t order;
    Kind kind;
    std::uint32_t client, life, inbox;
    std::uint32_t message;  // its place
    bool operator<(const Event& e) const noexcept { return at != e.at ? at > e.at : order > e.order; }
  };
  struct Connection {
    std::uint32_t epoch{};
    bool cut{false};
    Deadline to{}, back{};  // what goes later arrives later
  };
  struct Heard {
    QueueServer::Wake wake;
    std::uint32_t granted_in;
  };
  struct Unanswered {
    std::uint32_t number, connection;
    Deadline spent_by;
  };
  enum class Doing : std::uint8_t { nothing, deciding, asking, subscribing, listening, leaving, holding, dead };
  struct Client {
    std::uint32_t id{}, life{0};
    WorldClock clock;
    Doing doing{Doing::nothing};
    Deadline stalled_until{}, woken_at{Deadline::max()}, try_at{};
    // Its connections; in use: the one that asks, and the one that renews and releases.
    std::vector<Connection> connections;
    std::optional<std::uint32_t> asks_on, keeps_on;
    Inbox inbox{0};
    bool inbox_up{false}, inbox_lost{false};  // lost: and the plan has not been told
    std::vector<Heard> heard;
    std::vector<std::uint32_t> replies;
    // The wait.
    std::optional<WaitPlan> plan;
    Token token{0};
    Deadline give_up{}, stop_at{}, sent{}, limit{Deadline::max()}, until{}, left{}, begun{};
    std::int64_t arrival{0};
    std::uint32_t number{0}, attempts{0};
    Ask how{};
    bool doubt{false};
    std::vector<Unanswered> unanswered;
    // The lease.
    Deadline deadline{}, work_until{}, renew_at{}, spent_by{};
    std::uint32_t granted_in{0};
    bool renews{false};
    Orphans orphans;
    std::vector<Token> orphaned;
    // For the checks.
    std::optional<std::int64_t> stayed_since;  // has been in the queue, and heard, since it arrived
    Deadline quiet_since{};
    std::uint32_t quiet_asked{0};
  };

  bool has(QueueWeather kind) const noexcept {
    return weather_ == kind || weather_ == QueueWeather::storm ||
           (weather_ == QueueWeather::stepped && kind != QueueWeather::network);
  }
  std::int64_t server_time() const noexcept;
  bool serving() const noexcept { return now_ >= paused_until_; }
  void push(Deadline at, Kind, std::uint32_t client, std::uint32_t message = 0, Inbox inbox = 0);
  Span delay();
  Connection& connection(Client&, std::optional<std::uint32_t>& in_use);

  // queue_world.cpp: what happens
  void happen(const Event&);

  // queue_world_network.cpp: requests, answers, wake-ups; trouble
  void send(Client&, std::optional<std::uint32_t>& on, Message);
  void arrive(std::uint32_t message);
  void carry_out(Client&, Message&);
  void reply(Client&, std::uint32_t message);
  void deliver_wakes();
  void end_inbox(Client&, Inbox, Deadline at);
  void trouble();
  void trouble_wakes();
  void trouble_server();
  void crash(Client&);

  // queue_world_client.cpp: one wait
  void step(Client&);
  void begin(Client&, Deadline now);
  void decide(Client&, Deadline now);
  void ask(Client&, Ask, Deadline now);
  void subscribe(Client&, Deadline now);
  bool listen(Client&, Deadline now);
  void saw(Client&, const Message&, Deadline now);
  void saw_answer(Client&, const Message&, Deadline now);
  void time_out(Client&, Deadline now);
  void give_up(Client&, Deadline now, bool stopped);
  void settle(Client&, Deadline now, bool in_doubt);
  void close_inbox(Client&);
  void retire(Client&);
  void rest(Client&, Deadline now);

  // queue_world_holder.cpp: the lease, and what is left behind
  void hold(Client&, Deadline from, std::uint64_t fence, std::uint32_t granted_in, Deadline now);
  void keep(Client&, Deadline now);
  void release(Client&, Deadline now);
  Deadline spent_by(const Client&, Deadline after) const noexcept;
  void orphan(Client&, Deadline now, Deadline spent_by);
  void settled(Client&, Token);
  void saw_kept(Client&, const Message&, Deadline now);
  void send_orphans(Client&, Deadline now);
  void plan_wake(Client&);

  // queue_world_checks.cpp: what must hold
  bool waits(const Client&) const noexcept;
  bool held(const Client&) const noexcept;
  void check();
  void check_turns();
  void check_turn(const QueueServer::Turn&);
  void check_given(Token);
  void check_served();
  void check_quiet(Client&, Deadline now);
  void check_end();
  void disturb(Deadline until) noexcept { disturbed_until_ = std::max(disturbed_until_, until); }
  void broken(std::string what);
  void note(const Client*, const char* what, std::uint64_t number = 0);

  Dice dice_;
  QueueTally& tally_;
  std::vector<std::string>* trace_;
  QueueWeather weather_;
  Millis ttl_{}, op_timeout_{};
  Span margin_{}, longest_delay_{}, hold_{};
  Millis heartbeat_{}, lifetime_{};
  unsigned late_{};  // percent
  WorldClock server_clock_;
  Span server_step_{};
  QueueServer server_;
  std::vector<Client> clients_;
  std::vector<Message> messages_;
  std::vector<Heard> wakes_;  // on their way
  std::priority_queue<Event> events_;
  std::uint64_t order_{0}, tokens_{0}, strangers_{0};
  Deadline now_{}, end_{}, paused_until_{};
  std::uint32_t epoch_{0}, memory_{0};
  Inbox inboxes_{0};
  bool closing_{false};
  // For the checks.
  struct Retired {
    Token token;
    Deadline by;
  };
  std::vector<Retired> retired_;
  std::vector<Token> over_;     // given up, and nothing of it on its way
  std::vector<Token> excused_;  // left behind by a crash, or for too long
  std::uint64_t last_fence_{0};
  Deadline disturbed_until_{}, idle_since_{Deadline::max()};  // idle: neither held nor kept for one that is gone
  std::string broken_;
};

}  // namespace redlease::testing_support
