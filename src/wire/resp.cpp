#include "redlease/wire/resp.hpp"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <charconv>
#include <new>

namespace redlease {
inline namespace v0 {

namespace {

constexpr std::size_t header_room = 24;

char* put_line_end(char* to) noexcept {
  *to++ = '\r';
  *to++ = '\n';
  return to;
}

char* put_header(char* to, char sign, std::size_t n) noexcept {
  *to++ = sign;
  return put_line_end(std::to_chars(to, to + header_room, n).ptr);
}

}  // namespace

void append_command(std::string& frame, std::span<const std::string_view> words) {
  const std::size_t before = frame.size();
  std::size_t room = header_room;
  for (const std::string_view word : words) room += header_room + word.size() + 2;
  frame.resize(before + room);
  char* to = put_header(frame.data() + before, '*', words.size());
  for (const std::string_view word : words) {
    to = put_header(to, '$', word.size());
    to = put_line_end(std::copy(word.begin(), word.end(), to));
  }
  frame.resize(static_cast<std::size_t>(to - frame.data()));
}

// hiredis calls these while it parses. They fill the Reply that the reader keeps, in place. A null pointer makes
// hiredis stop with an error, which is how the bounds are kept: createArray is called with the header's count before
// anything is reserved.
struct ReplyBuilder {
  // hiredis asks for each object where its parent says; nullptr refuses.
  static Reply* place(const redisReadTask* task) noexcept {
    auto* reader = static_cast<ReplyReader*>(task->privdata);
    if (task->parent == nullptr) {
      reader->elements_ = 0;
      return clean(&reader->root_);
    }
    auto* parent = static_cast<Reply*>(task->parent->obj);
    const auto index = static_cast<std::size_t>(task->idx);
    return index < parent->items.size() ? clean(&parent->items[index]) : nullptr;
  }

  static Reply* clean(Reply* reply) noexcept {
    reply->kind = Reply::Kind::nil;
    reply->integer = 0;
    reply->text.clear();
    reply->elements = 0;
    return reply;
  }

  static void* string(const redisReadTask* task, char* bytes, std::size_t size) noexcept {
    Reply* reply = place(task);
    if (reply == nullptr) return nullptr;
    switch (task->type) {
      case REDIS_REPLY_ERROR: reply->kind = Reply::Kind::error; break;
      case REDIS_REPLY_STATUS: reply->kind = Reply::Kind::status; break;
      case REDIS_REPLY_STRING: reply->kind = Reply::Kind::text; break;
      default: return nullptr;
    }
    try {
      reply->text.assign(bytes, size);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    return reply;
  }

  // Called with an int by hiredis 0.14 and with a size_t by 1.x.
  template <class Count>
  static void* array(const redisReadTask* task, Count count) noexcept {
    auto* reader = static_cast<ReplyReader*>(task->privdata);
    Reply* reply = place(task);
    if (reply == nullptr || task->type != REDIS_REPLY_ARRAY) return nullptr;
    std::size_t depth = 1;
    for (const redisReadTask* t = task->parent; t != nullptr; t = t->parent) ++depth;
    const auto elements = static_cast<std::size_t>(count);
    if (depth > ReplyReader::max_depth || elements > ReplyReader::max_elements - reader->elements_) return nullptr;
    reader->elements_ += elements;
    reply->kind = Reply::Kind::array;
    reply->elements = elements;
    try {
      if (reply->items.size() < elements) reply->items.resize(elements);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    return reply;
  }

  static void* integer(const redisReadTask* task, long long value) noexcept {
    Reply* reply = place(task);
    if (reply == nullptr) return nullptr;
    reply->kind = Reply::Kind::integer;
    reply->integer = value;
    return reply;
  }

  // RESP2 has nil texts and nil arrays; a nil of its own type is RESP3.
  static void* nil(const redisReadTask* task) noexcept { return task->type == REDIS_REPLY_NIL ? nullptr : place(task); }

  static void free(void*) noexcept {}  // all replies belong to the ReplyReader

  // The table has more members from hiredis 1.0 on, and all must refuse: hiredis puts small numbers in place of missing
  // ones, which we would take for pointers.
  template <class Functions>
  static Functions table() noexcept {
    Functions f{};
    f.createString = &string;
    f.createArray = &array;
    f.createInteger = &integer;
    f.createNil = &nil;
    f.freeObject = &free;
    if constexpr (requires { f.createDouble; }) {
      f.createDouble = [](const redisReadTask*, double, char*, std::size_t) -> void* { return nullptr; };
      f.createBool = [](const redisReadTask*, int) -> void* { return nullptr; };
    }
    return f;
  }
};

void ReplyReader::Free::operator()(redisReader* reader) const noexcept { redisReaderFree(reader); }

ReplyReader::ReplyReader() {
  static auto functions = ReplyBuilder::table<redisReplyObjectFunctions>();
  reader_.reset(redisReaderCreateWithFunctions(&functions));
  if (!reader_) throw std::bad_alloc();
  reader_->privdata = this;
  // The buffer grows by what it is fed and shrinks by nothing below 16 KiB, so one large reply now is all that the
  // small ones later ever need: see "allocates nothing" at Lease::renew.
  feed("$2048\r\n" + std::string(2048, ' ') + "\r\n");
  next();
}

ReplyReader::~ReplyReader() = default;

void ReplyReader::feed(std::string_view bytes) {
  if (!trouble_.empty()) return;
  bytes_ += bytes.size();
  if (bytes_ > max_bytes) {
    trouble_ = "a reply of more than 1 MiB";
    return;
  }
  if (redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != REDIS_OK) trouble_ = reader_->errstr;
}

ReplyReader::State ReplyReader::next() {
  if (!trouble_.empty()) return State::broken;
  void* reply = nullptr;
  if (redisReaderGetReply(reader_.get(), &reply) != REDIS_OK) {
    trouble_ = reader_->err == REDIS_ERR_OOM ? "a reply that is too large or of an unknown type" : reader_->errstr;
    return State::broken;
  }
  if (reply == nullptr) return State::needs_more;
  bytes_ = reader_->len - reader_->pos;
  return State::ready;
}

}  // namespace v0
}  // namespace redlease
