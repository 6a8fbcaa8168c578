#include "store/inbox.hpp"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <stop_token>
#include <system_error>
#include <utility>

#include "concat.hpp"
#include "redlease/types.hpp"
#include "wire/open_connection.hpp"
#include "wire/server_errors.hpp"

namespace redlease {
inline namespace v0 {

namespace {

constexpr std::string_view channel_prefix = "redlease:inbox:";

// The client's id, as in its tokens, and a number that no other inbox of this process ever had.
std::string fresh_name() {
  static std::atomic<std::uint64_t> last{0};
  const std::string token = OwnerToken::generate().str();
  return token.substr(0, token.find('.') + 1) + std::to_string(++last);
}

// Until there is something to read, the bell rings, or the time has come.
void await(int readable, const Bell& bell, Deadline until) noexcept {
  const auto left = std::clamp<LeaseClock::duration>(until - LeaseClock::now(), {}, std::chrono::hours(1));
  const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
  pollfd polled[]{{readable, POLLIN, 0}, {bell.descriptor(), POLLIN, 0}};
  ::ppoll(polled, 2, &timeout, nullptr);
}

}  // namespace

Subscription::Subscription(const Endpoint& endpoint, std::shared_ptr<Observer> observer)
    : endpoint_(endpoint), observer_(std::move(observer)), name_(fresh_name()) {}

Seat::Subscribed Subscription::connect(const Limits& limits) {
  connection_.reset();
  auto opened = open_connection(endpoint_, observer_.get(), limits);
  error_ = opened.has_value() ? Error{} : opened.error();
  if (!opened.has_value()) return Seat::Subscribed::no;
  std::unique_ptr<Connection> connection = std::move(opened).value();
  std::string& frame = connection->frame();
  append_command(frame, {"SUBSCRIBE", concat({channel_prefix, name_})});
  if (connection->call(frame, limits) != Delivery::answered) {
    error_ = connection->error();
    return Seat::Subscribed::no;
  }
  if (connection->reply().is_error()) {
    const std::string text(quotable(connection->reply().text));
    const Errc code = classify(text).code;
    error_ = advised({code, concat({endpoint_.display, " refused SUBSCRIBE ", channel_prefix, name_, " (", text,
                                    "); waiters take their turns by asking"})},
                     text);
    return code == Errc::not_ready ? Seat::Subscribed::no : Seat::Subscribed::refused;
  }
  connection_ = std::move(connection);
  return Seat::Subscribed::yes;
}

const std::string* Subscription::next(const Limits& limits, Seat::Silence& silence) {
  std::optional<std::stop_callback<std::function<void()>>> wake;
  const bool stoppable = limits.stop.stop_possible();
  if (stoppable && connection_) {
    try {
      if (!bell_) bell_.emplace();
    } catch (const std::system_error& error) {  // out of descriptors: as good as no inbox
      error_ = {Errc::connection_closed, concat({"no descriptor to wait with: ", error.what()})};
      connection_.reset();
      silence = Seat::Silence::inbox_lost;
      return nullptr;
    }
    bell_->silence();
    wake.emplace(limits.stop, [&bell = *bell_] { bell.ring(); });
  }
  while (connection_) {
    // Where nothing but time can end the wait, one system call does.
    const Reply* const said = connection_->hear({stoppable ? Deadline::min() : limits.deadline, {}});
    if (said != nullptr) {
      if (said->kind == Reply::Kind::array && said->elements == 3 && said->items[0].text == "message") {
        return &said->items[2].text;
      }
      continue;
    }
    if (connection_->dead()) break;
    silence = limits.stop.stop_requested() ? Seat::Silence::stopped : Seat::Silence::time_is_up;
    if (silence == Seat::Silence::stopped || LeaseClock::now() >= limits.deadline) return nullptr;
    if (stoppable) await(connection_->descriptor(), *bell_, limits.deadline);
  }
  if (connection_) error_ = connection_->error();
  connection_.reset();
  silence = Seat::Silence::inbox_lost;
  return nullptr;
}

}  // namespace v0
}  // namespace redlease
