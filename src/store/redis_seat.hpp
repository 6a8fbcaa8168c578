#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "redlease/store/seat.hpp"
#include "redlease/wire/connection.hpp"
#include "redlease/wire/pool.hpp"
#include "store/inboxes.hpp"
#include "store/redis_calls.hpp"

namespace redlease {
inline namespace v0 {

// A waiter at a server. Its token, its place and the name of its inbox stay the same from the first question to the
// last.
class RedisSeat final : public Seat {
 public:
  RedisSeat(const RedisCalls&, Inboxes&, const AcquireRequest&);
  RedisSeat(const RedisSeat&) = delete;
  RedisSeat& operator=(const RedisSeat&) = delete;
  ~RedisSeat() override;

  const OwnerToken& token() const noexcept override { return token_; }
  bool has_queue() const noexcept override { return true; }
  bool has_inbox() const noexcept override { return inbox_ != nullptr; }
  Answer ask(Ask, Millis lifetime, const Limits&) override;
  Subscribed subscribe(const Limits&) override;
  Heard listen(const Limits&) override;
  Released leave(const Limits&) override;
  Deadline spent_by() const noexcept override;
  std::string_view place() const noexcept override { return member_; }
  std::unique_ptr<Doubt> doubt() override;

 private:
  RedisCalls::Attempt attempt(Ask, Millis lifetime, const Limits&);
  void write_member(std::string_view lifetime);
  bool owed() noexcept;
  void saw_unanswered(std::unique_ptr<Connection>, Deadline spent_by) noexcept;
  Answer settled(RedisCalls::Attempt);

  const RedisCalls calls_;
  Inboxes& inboxes_;
  AcquireRequest request_;
  const OwnerToken token_{OwnerToken::generate()};
  std::string member_;  // of the queue; names the inbox, once there is one
  std::int64_t arrival_{0};
  std::unique_ptr<Inbox> inbox_;
  bool hears_{inbox_ != nullptr};         // it is connected, as far as we know
  std::unique_ptr<Connection> owing_;     // with questions that it has not answered
  Deadline owed_until_{Deadline::min()};  // from when on they are not carried out any more
  Deadline lost_until_{Deadline::min()};  // the same of those whose connection is lost
  bool in_queue_{false};
  bool no_queue_{false};  // this user may not use it, or another type is at its key
  bool in_doubt_{false};  // the latest question that was sent has not been answered
};

}  // namespace v0
}  // namespace redlease
