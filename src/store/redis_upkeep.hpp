#pragma once
// Renewals and releases for the background, many at a time over one connection of its own.
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bell.hpp"
#include "mutex.hpp"
#include "redlease/store/upkeep.hpp"
#include "redlease/wire/connection.hpp"
#include "redlease/wire/endpoint.hpp"

namespace redlease {
inline namespace v0 {

class Observer;

class RedisUpkeep final : public Upkeep {
 public:
  RedisUpkeep(Endpoint, std::shared_ptr<Observer>, const Clock&);
  bool ready(LeaseClock::duration limit) override;
  void add(const Task&) override;
  void flush(const Limits&) override;
  void wait(Deadline until, News&) override;
  void wake() noexcept override { bell_.ring(); }

 private:
  struct Sent {
    std::uint64_t ticket;
    LeaseClock::duration op_timeout;
    Deadline at{};     // by the store's clock
    Deadline limit{};  // when it should have been answered
    std::uint32_t number, size;
    Verb verb;
    bool late{false};  // and was told to be
  };
  // A connection and what was sent on it and not answered yet, in order.
  struct Pipe {
    explicit Pipe(std::unique_ptr<Connection> of) noexcept : connection(std::move(of)) {}

    std::unique_ptr<Connection> connection;
    std::deque<Sent> sent;
    std::size_t size = 0;  // of all that was sent and not answered

    bool read(RedisUpkeep&);  // false: it is of no further use
    void lose(RedisUpkeep&);  // answers all with "unknown"
  };
  // Whether the server knows a script by its digest; asked: it was sent the text and has not answered yet.
  enum class Known : std::uint8_t { yes, asked, no };

  void take_opened(News&);
  void connect(LeaseClock::duration limit);
  void dial(LeaseClock::duration limit, const std::stop_token&) noexcept;
  void opened(Result<std::unique_ptr<Connection>>);
  Answer answer_to(const Sent&, const Connection&);
  void tell_late();
  Known& known(Verb verb) noexcept { return known_[static_cast<std::size_t>(verb)]; }

  const Endpoint endpoint_;
  const std::shared_ptr<Observer> observer_;
  const Clock& clock_;
  Bell bell_;  // rings to end a wait
  std::optional<Pipe> pipe_;
  std::optional<Pipe> slow_;  // did not answer in time; it still may
  std::string frame_;
  std::vector<Sent> added_;
  std::vector<Answer> answers_;
  Known known_[2]{};
  LeaseClock::duration pause_{};  // before the next attempt to connect
  Deadline connect_at_{Deadline::min()};
  Deadline next_limit_{Deadline::max()};  // no later than the first of what was sent and is not late
  Deadline now_{LeaseClock::now()};       // as of the last wait: to ask for each task would cost more than the rest
  Deadline dialled_at_{}, enough_at_{};
  bool wanted_{false}, connecting_{false}, cut_short_{false};

  Mutex mutex_;
  std::optional<Result<std::unique_ptr<Connection>>> opened_ REDLEASE_GUARDED_BY(mutex_);
  std::jthread connector_;  // the last member: it uses the others
};

}  // namespace v0
}  // namespace redlease
