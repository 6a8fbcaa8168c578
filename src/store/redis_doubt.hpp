#pragma once
#include <memory>
#include <string>

#include "redlease/store/lease_store.hpp"
#include "redlease/wire/connection.hpp"
#include "store/redis_calls.hpp"

namespace redlease {
inline namespace v0 {

// An acquire that may have been executed, and its connection (null or dead where that broke).
class RedisDoubt final : public Doubt {
 public:
  // For `spent_by` see RedisCalls::Attempt; for `member`, RedisCalls::release.
  RedisDoubt(const RedisCalls&, std::unique_ptr<Connection>, const AcquireRequest&, Deadline spent_by,
             std::string member = {});
  RedisDoubt(const RedisDoubt&) = delete;
  RedisDoubt& operator=(const RedisDoubt&) = delete;
  ~RedisDoubt() override;
  // Looks first whether it was closed meanwhile: what is written then is lost without a word.
  bool can_retry() noexcept override { return connection_ && (connection_->settled(), !connection_->dead()); }
  Acquisition retry(const AcquireRequest&, const Limits&) override;
  Released withdraw(const Limits&) override;
  void abandon() noexcept override;
  Deadline spent_by() const noexcept override { return spent_by_; }
  std::string_view place() const noexcept override { return member_; }

 private:
  const std::string& withdrawal();  // as a frame of the connection
  Released withdraw_behind(const Limits&);
  Released withdraw_elsewhere(const Limits&);
  RedisCalls calls_;
  std::unique_ptr<Connection> connection_;
  std::string key_, token_, member_;
  Deadline spent_by_;
  Millis op_timeout_;
  bool settled_{false};
};

}  // namespace v0
}  // namespace redlease
