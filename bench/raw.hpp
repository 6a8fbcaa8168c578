#pragma once
// The floor that everything is compared with: hiredis alone, on one blocking connection.
#include <hiredis/hiredis.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

struct FreeReply {
  void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
};
using RawReply = std::unique_ptr<redisReply, FreeReply>;

// A command whose words are laid out once and sent many times. Not movable: it points into itself.
class Prepared {
 public:
  explicit Prepared(std::vector<std::string> words);
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

 private:
  friend class Raw;
  std::vector<std::string> words_;
  std::vector<const char*> argv_;
  std::vector<std::size_t> sizes_;
};

// Whatever goes wrong ends the benchmark: std::runtime_error.
class Raw {
 public:
  explicit Raw(const std::string& url);  // unix://path or redis://host:port

  RawReply call(Prepared&);
  RawReply call(std::initializer_list<std::string_view> words);

  // Leaves with the next receive().
  void append(std::initializer_list<std::string_view> words);

  // Bytes as they go over the wire, one command or many.
  void send(std::string_view frame);
  RawReply receive();

 private:
  struct Close {
    void operator()(redisContext* context) const noexcept { redisFree(context); }
  };
  RawReply checked(void* reply);
  std::unique_ptr<redisContext, Close> context_;
};

}  // namespace bench
