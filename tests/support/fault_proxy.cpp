#include "support/fault_proxy.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "support/sleepless.hpp"

namespace redlease {
inline namespace v0 {

FaultProxy::FaultProxy(ServerAddress target, Front front) : target_(std::move(target)) {
  if (front == Front::tcp) {
    front_.port = free_port();
  } else {
    front_.path = dir_.path() + "/proxy.sock";
  }
  listener_ = listen_at(front_);
  loop_.start([this](std::vector<pollfd>& sockets) { return prepare(sockets); }, [this] { handle(); });
}

FaultProxy::~FaultProxy() { loop_.stop(); }

Deadline FaultProxy::prepare(std::vector<pollfd>& sockets) {
  if (!refusing_) sockets.push_back({listener_.get(), POLLIN, 0});
  Deadline until = Deadline::max();
  for (const auto& link : links_) until = std::min(until, link->prepare(sockets));
  return until;
}

void FaultProxy::handle() {
  accept_all();
  for (const auto& link : links_) link->pump();
}

void FaultProxy::accept_all() {
  if (refusing_) return;
  while (TestFd client = accept_from(listener_)) {
    Faults faults = for_new_;
    if (!for_next_.empty()) {
      faults = for_next_.front();
      for_next_.pop_front();
    }
    links_.push_back(std::make_unique<FaultLink>(std::move(client), target_, faults));
  }
}

FaultLink& FaultProxy::newest_link() const {
  if (links_.empty()) throw std::logic_error("nobody has connected to the proxy yet");
  return *links_.back();
}

void FaultProxy::on_new(Faults faults) {
  loop_.run([&] { for_new_ = faults; });
}

void FaultProxy::on_next(Faults faults) {
  loop_.run([&] { for_next_.push_back(faults); });
}

void FaultProxy::set(Faults faults) {
  loop_.run([&] { newest_link().set(faults); });
}

void FaultProxy::heal() {
  loop_.run([&] {
    for_new_ = {};
    for_next_.clear();
    for (const auto& link : links_) link->set({});
  });
}

void FaultProxy::withhold_requests(bool withhold) {
  loop_.run([&] {
    for (const auto& link : links_) link->up().faults.withhold = withhold;
  });
}

void FaultProxy::withhold_replies(bool withhold) {
  loop_.run([&] {
    for (const auto& link : links_) link->down().faults.withhold = withhold;
  });
}

void FaultProxy::cut_after(std::uint64_t up_more, std::uint64_t down_more, bool reset) {
  loop_.run([&] {
    FaultLink& link = newest_link();
    link.up().faults.cut_after = link.up().delivered_bytes() + up_more;
    link.down().faults.cut_after = link.down().delivered_bytes() + down_more;
    link.reset_at_cut(reset);
  });
}

void FaultProxy::refuse(bool refuse) {
  loop_.run([&] {
    if (refuse == refusing_) return;
    if (!refuse) {
      listener_.close();
      if (!front_.path.empty()) ::unlink(front_.path.c_str());
      listener_ = listen_at(front_);
    } else {
      listener_.close();
      // Bound and not listening: the port is refused, and nobody else's.
      if (front_.path.empty()) listener_ = bind_to(front_);
    }
    refusing_ = refuse;
  });
}

void FaultProxy::drop_all() {
  loop_.run([&] {
    for (const auto& link : links_) link->cut();
  });
}

void FaultProxy::retarget(ServerAddress target) {
  loop_.run([&] { target_ = std::move(target); });
}

std::size_t FaultProxy::connections() const {
  std::size_t result = 0;
  loop_.run([&] { result = links_.size(); });
  return result;
}

FaultProxy::Stats FaultProxy::stats(std::size_t connection) const {
  Stats result{};
  loop_.run([&] {
    FaultLink& link = *links_.at(connection);
    result = {link.up().delivered_bytes(),
              link.down().delivered_bytes(),
              link.up().received_bytes(),
              link.down().received_bytes(),
              link.open(),
              link.server_done()};
  });
  return result;
}

FaultProxy::Stats FaultProxy::newest() const {
  std::size_t count = connections();
  if (count == 0) throw std::logic_error("nobody has connected to the proxy yet");
  return stats(count - 1);
}

bool FaultProxy::settled(Millis limit) const {
  return eventually(
      [&] {
        bool result = true;
        loop_.run([&] {
          for (const auto& link : links_) result = result && (link->open() || link->server_done());
        });
        return result;
      },
      limit);
}

}  // namespace v0
}  // namespace redlease
