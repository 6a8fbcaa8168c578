#include "support/scripted_server.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <stdexcept>

namespace redlease {
inline namespace v0 {

ScriptedServer::ScriptedServer(Script script) : script_(std::move(script)) {
  address_.port = free_port();
  listener_ = listen_at(address_);
  loop_.start(
      [this](std::vector<pollfd>& sockets) {
        sockets.push_back({listener_.get(), POLLIN, 0});
        for (const Peer& peer : peers_) sockets.push_back({peer.fd.get(), POLLIN, 0});
        return Deadline::max();
      },
      [this] { handle(); });
}

ScriptedServer::~ScriptedServer() { loop_.stop(); }

void ScriptedServer::handle() {
  while (TestFd fd = accept_from(listener_)) {
    peers_.push_back({std::move(fd), {}});
    ++connections_;
  }
  for (Peer& peer : peers_) serve(peer);
  std::erase_if(peers_, [](const Peer& peer) { return peer.gone; });
}

void ScriptedServer::serve(Peer& peer) {
  std::array<char, 16384> bytes;
  while (!peer.gone) {
    const ssize_t n = ::recv(peer.fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    peer.gone = n <= 0;
    if (peer.gone) return;
    try {
      peer.reader.feed({bytes.data(), static_cast<std::size_t>(n)});
      while (const auto request = peer.gone ? std::nullopt : peer.reader.next()) {
        Command command;
        for (const RawReply& element : request->elements) command.push_back(element.text);
        answer(peer, command);
      }
    } catch (const std::runtime_error&) {
      peer.gone = true;  // does not speak RESP, or has left
    }
  }
}

void ScriptedServer::answer(Peer& peer, const Command& command) {
  commands_.push_back(command);
  const std::string answer = script_(command);
  std::string_view bytes = answer;
  if (bytes.ends_with(hang_up)) {
    peer.gone = true;
    bytes.remove_suffix(hang_up.size());
  }
  send_all(peer.fd, bytes);
}

std::vector<ScriptedServer::Command> ScriptedServer::commands() const {
  std::vector<Command> result;
  loop_.run([&] { result = commands_; });
  return result;
}

std::size_t ScriptedServer::connections() const {
  std::size_t result = 0;
  loop_.run([&] { result = connections_; });
  return result;
}

}  // namespace v0
}  // namespace redlease
