#include "support/raw_reply.hpp"

#include <hiredis/hiredis.h>

#include <stdexcept>

namespace redlease {
inline namespace v0 {
namespace {

RawReply copy(const redisReply& reply) {
  RawReply result;
  switch (reply.type) {
    case REDIS_REPLY_STATUS: result.kind = RawReply::Kind::status; break;
    case REDIS_REPLY_STRING: result.kind = RawReply::Kind::text; break;
    case REDIS_REPLY_INTEGER: result.kind = RawReply::Kind::integer; break;
    case REDIS_REPLY_ERROR: result.kind = RawReply::Kind::error; break;
    case REDIS_REPLY_ARRAY: result.kind = RawReply::Kind::array; break;
    case REDIS_REPLY_NIL: return result;
    default: throw std::runtime_error("a reply of RESP type " + std::to_string(reply.type) + ", unknown to RawReply");
  }
  result.integer = reply.type == REDIS_REPLY_INTEGER ? reply.integer : 0;
  if (reply.str != nullptr) result.text.assign(reply.str, static_cast<std::size_t>(reply.len));
  if (reply.type == REDIS_REPLY_ARRAY) {
    for (std::size_t i = 0; i < reply.elements; ++i) result.elements.push_back(copy(*reply.element[i]));
  }
  return result;
}

}  // namespace

std::string to_string(const RawReply& reply) {
  switch (reply.kind) {
    case RawReply::Kind::nil: return "nil";
    case RawReply::Kind::integer: return std::to_string(reply.integer);
    case RawReply::Kind::error: return "(error) " + reply.text;
    case RawReply::Kind::status:
    case RawReply::Kind::text: return reply.text;
    case RawReply::Kind::array: break;
  }
  std::string result = "[";
  for (const RawReply& element : reply.elements) {
    if (result.size() > 1) result += ", ";
    result += to_string(element);
  }
  return result + "]";
}

void RawReader::Deleter::operator()(redisReader* reader) const noexcept { redisReaderFree(reader); }

RawReader::RawReader() : reader_(redisReaderCreate()) {
  if (!reader_) throw std::bad_alloc();
}

void RawReader::feed(std::string_view bytes) {
  if (redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK) throw std::runtime_error(reader_->errstr);
}

std::optional<RawReply> RawReader::next() {
  void* reply = nullptr;
  if (redisReaderGetReply(reader_.get(), &reply) != REDIS_OK) throw std::runtime_error(reader_->errstr);
  if (reply == nullptr) return std::nullopt;
  const std::unique_ptr<void, void (*)(void*)> owner(reply, freeReplyObject);
  return copy(*static_cast<redisReply*>(reply));
}

std::string raw_command(const std::vector<std::string>& argv) {
  std::vector<const char*> texts;
  std::vector<std::size_t> sizes;
  for (const std::string& arg : argv) {
    texts.push_back(arg.data());
    sizes.push_back(arg.size());
  }
  char* bytes = nullptr;
  const auto size = redisFormatCommandArgv(&bytes, static_cast<int>(argv.size()), texts.data(), sizes.data());
  if (size < 0) throw std::bad_alloc();
  const std::unique_ptr<char, void (*)(char*)> owner(bytes, redisFreeCommand);
  return std::string(bytes, static_cast<std::size_t>(size));
}

}  // namespace v0
}  // namespace redlease
