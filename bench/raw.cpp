#include "raw.hpp"

#include <array>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

namespace bench {

Prepared::Prepared(std::vector<std::string> words) : words_(std::move(words)) {
  for (const std::string& word : words_) {
    argv_.push_back(word.data());
    sizes_.push_back(word.size());
  }
}

Raw::Raw(const std::string& url) {
  constexpr std::string_view unix_scheme = "unix://";
  constexpr std::string_view tcp_scheme = "redis://";
  if (url.starts_with(unix_scheme)) {
    // With thousands that come at once the backlog of a unix socket is full for a moment, and nothing tells when it no
    // longer is.
    for (int tries = 0; tries < 400; ++tries) {
      context_.reset(redisConnectUnix(url.c_str() + unix_scheme.size()));
      if (!context_ || context_->err != REDIS_ERR_IO) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  } else {
    const std::string address = url.substr(tcp_scheme.size());
    const auto colon = address.rfind(':');
    context_.reset(redisConnect(address.substr(0, colon).c_str(), std::stoi(address.substr(colon + 1))));
  }
  if (!context_) throw std::runtime_error("out of memory while connecting to " + url);
  if (context_->err != 0) throw std::runtime_error("no connection to " + url + ": " + context_->errstr);
}

RawReply Raw::call(Prepared& command) {
  const auto count = static_cast<int>(command.argv_.size());
  return checked(redisCommandArgv(context_.get(), count, command.argv_.data(), command.sizes_.data()));
}

RawReply Raw::call(std::initializer_list<std::string_view> words) {
  Prepared command({words.begin(), words.end()});
  return call(command);
}

void Raw::append(std::initializer_list<std::string_view> words) {
  std::array<const char*, 8> argv{};
  std::array<std::size_t, 8> sizes{};
  std::size_t count = 0;
  for (const std::string_view word : words) {
    argv.at(count) = word.data();
    sizes.at(count++) = word.size();
  }
  if (redisAppendCommandArgv(context_.get(), static_cast<int>(count), argv.data(), sizes.data()) != REDIS_OK) {
    throw std::runtime_error(std::string("a command could not be sent: ") + context_->errstr);
  }
}

void Raw::send(std::string_view frame) {
  if (redisAppendFormattedCommand(context_.get(), frame.data(), frame.size()) != REDIS_OK) {
    throw std::runtime_error(std::string("a command could not be sent: ") + context_->errstr);
  }
}

RawReply Raw::receive() {
  void* reply = nullptr;
  if (redisGetReply(context_.get(), &reply) != REDIS_OK) reply = nullptr;
  return checked(reply);
}

RawReply Raw::checked(void* reply) {
  RawReply answer(static_cast<redisReply*>(reply));
  if (!answer) throw std::runtime_error(std::string("the connection broke: ") + context_->errstr);
  if (answer->type == REDIS_REPLY_ERROR) throw std::runtime_error("the server answered " + std::string(answer->str));
  return answer;
}

}  // namespace bench
