#include <utility>

#include "nap.hpp"
#include "redlease/store/seat.hpp"

namespace redlease {
inline namespace v0 {

namespace {

class PlainSeat final : public Seat {
 public:
  PlainSeat(LeaseStore& store, const AcquireRequest& request) : store_(store), request_(request) {}

  const OwnerToken& token() const noexcept override { return token_; }
  bool has_queue() const noexcept override { return false; }
  bool has_inbox() const noexcept override { return false; }

  Answer ask(Ask, Millis, const Limits& limits) override {
    request_.token = token_.str();
    if (!doubt_) return answer(store_.acquire(request_, limits));
    if (doubt_->can_retry()) {
      const std::unique_ptr<Doubt> spent = std::move(doubt_);
      return answer(spent->retry(request_, limits));
    }
    Released withdrawn = leave(limits);
    if (doubt_) return InDoubt{std::move(withdrawn.error)};
    token_ = OwnerToken::generate();  // a token is spent once withdrawn
    return ask(Ask::once, {}, limits);
  }

  Subscribed subscribe(const Limits&) override { return Subscribed::refused; }

  Heard listen(const Limits& limits) override {
    nap(limits);
    return limits.stop.stop_requested() ? Silence::stopped : Silence::time_is_up;
  }

  Released leave(const Limits& limits) override {
    if (!doubt_) return {ReleaseOutcome::not_held, LossCause::gone, {}};
    Released withdrawn = doubt_->withdraw(limits);
    if (withdrawn.outcome == ReleaseOutcome::released || withdrawn.outcome == ReleaseOutcome::not_held) doubt_.reset();
    return withdrawn;
  }

  Deadline spent_by() const noexcept override { return Deadline::min(); }  // what is asked again goes behind the first
  std::unique_ptr<Doubt> doubt() override { return std::move(doubt_); }

 private:
  Answer answer(Acquisition acquisition) {
    if (auto* granted = std::get_if<Granted>(&acquisition)) return *granted;
    if (auto* busy = std::get_if<Busy>(&acquisition)) return std::move(*busy);
    if (auto* error = std::get_if<Error>(&acquisition)) return std::move(*error);
    auto& doubtful = std::get<Doubtful>(acquisition);
    doubt_ = std::move(doubtful.doubt);
    return InDoubt{std::move(doubtful.error)};
  }

  LeaseStore& store_;
  AcquireRequest request_;
  OwnerToken token_{OwnerToken::generate()};
  std::unique_ptr<Doubt> doubt_;
};

}  // namespace

std::unique_ptr<Seat> plain_seat(LeaseStore& store, const AcquireRequest& request) {
  return std::make_unique<PlainSeat>(store, request);
}

std::unique_ptr<Seat> LeaseStore::seat(const AcquireRequest& request) { return plain_seat(*this, request); }

}  // namespace v0
}  // namespace redlease
