#include "redlease/wire/resp.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

using namespace redlease;
using State = ReplyReader::State;

namespace {

// What the reader makes of `bytes` fed in pieces of `step` bytes: one line a reply, then "needs more" or "broken".
std::string read_all(std::string_view bytes, std::size_t step) {
  ReplyReader reader;
  std::string seen;
  const auto show = [](const auto& self, const Reply& reply) -> std::string {
    switch (reply.kind) {
      case Reply::Kind::nil: return "nil";
      case Reply::Kind::integer: return std::to_string(reply.integer);
      case Reply::Kind::text: return "'" + reply.text + "'";
      case Reply::Kind::status: return "+" + reply.text;
      case Reply::Kind::error: return "-" + reply.text;
      case Reply::Kind::array: break;
    }
    std::string all = "[";
    for (std::size_t i = 0; i < reply.elements; ++i) all += self(self, reply.items[i]) + " ";
    return all + "]";
  };
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    reader.feed(bytes.substr(at, step));
    State state{};
    while ((state = reader.next()) == State::ready) seen += show(show, reader.reply()) + "\n";
    if (state == State::broken) return seen + "broken";
  }
  return seen + "needs more";
}

std::string nested(int depth) {
  std::string bytes;
  for (int i = 0; i < depth; ++i) bytes += "*1\r\n";
  return bytes + ":1\r\n";
}

}  // namespace

TEST(AppendCommand, WritesAnArrayOfBulkStrings) {
  std::string frame;
  append_command(frame, {"SET", "k", std::string_view("a\0b", 3), ""});
  EXPECT_EQ(frame, std::string("*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\na\0b\r\n$0\r\n\r\n", 35));
}

TEST(AppendCommand, AppendsSoThatCommandsCanBePipelined) {
  std::string frame;
  append_command(frame, {"A"});
  append_command(frame, {"B"});
  EXPECT_EQ(frame, "*1\r\n$1\r\nA\r\n*1\r\n$1\r\nB\r\n");
}

TEST(ReplyReader, ReadsEveryKindInWhateverPiecesItComes) {
  const std::string bytes =
      "+OK\r\n-ERR "
      "no\r\n:-7\r\n$-1\r\n*-1\r\n$0\r\n\r\n$5\r\na\r\nbc\r\n*3\r\n:1\r\n$2\r\nxy\r\n*2\r\n$-1\r\n:2\r\n*0\r\n";
  const std::string whole = read_all(bytes, bytes.size());
  EXPECT_EQ(whole, "+OK\n-ERR no\n-7\nnil\nnil\n''\n'a\r\nbc'\n[1 'xy' [nil 2 ] ]\n[]\nneeds more");
  for (std::size_t step = 1; step < bytes.size(); ++step)
    EXPECT_EQ(read_all(bytes, step), whole) << "in pieces of " << step;
}

TEST(ReplyReader, AReplyLeavesNothingOfTheOneBefore) {
  EXPECT_EQ(read_all("*3\r\n:1\r\n:2\r\n:3\r\n*2\r\n$-1\r\n:9\r\n:4\r\n$1\r\nx\r\n", 7),
            "[1 2 3 ]\n[nil 9 ]\n4\n'x'\nneeds more");
}

TEST(ReplyReader, RefusesAHugeHeaderAtOnce) {
  ReplyReader reader;
  reader.feed("*2000000000\r\n");
  EXPECT_EQ(reader.next(), State::broken);
  EXPECT_FALSE(reader.trouble().empty());
}

TEST(ReplyReader, CountsTheElementsOfNestedArraysTogether) {
  std::string bytes = "*2\r\n*4000\r\n";
  for (int i = 0; i < 4000; ++i) bytes += ":1\r\n";
  EXPECT_EQ(read_all(bytes + "*94\r\n", 4096), "needs more");  // 2 + 4000 + 94 = 4096
  EXPECT_EQ(read_all(bytes + "*95\r\n", 4096), "broken");
}

TEST(ReplyReader, TheBoundOfElementsIsPerReply) {
  std::string bytes;
  for (int reply = 0; reply < 3; ++reply) {
    bytes += "*4096\r\n";
    for (int i = 0; i < 4096; ++i) bytes += ":1\r\n";
  }
  const std::string seen = read_all(bytes, 4096);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), '\n'), 3);
}

TEST(ReplyReader, RefusesMoreThanAMebibyte) {
  ReplyReader reader;
  reader.feed("$2000000\r\n");
  EXPECT_EQ(reader.next(), State::needs_more);
  const std::string piece(1 << 16, 'x');
  State state = State::needs_more;
  for (int i = 0; i < 17 && state == State::needs_more; ++i) {
    reader.feed(piece);
    state = reader.next();
  }
  EXPECT_EQ(state, State::broken);
}

TEST(ReplyReader, ManySmallRepliesAreNotOneLargeOne) {
  ReplyReader reader;
  for (int i = 0; i < 200'000; ++i) {
    reader.feed("$10\r\n0123456789\r\n");
    ASSERT_EQ(reader.next(), State::ready);
  }
}

TEST(ReplyReader, RefusesDeepNesting) {
  EXPECT_NE(read_all(nested(7), 4), "broken");
  EXPECT_EQ(read_all(nested(9), 4), "broken");
  EXPECT_EQ(read_all(nested(5000), 4096), "broken");
}

TEST(ReplyReader, RefusesGarbageAndStaysBroken) {
  for (const char* bytes : {"HTTP/1.1 400 Bad Request\r\n", "?\r\n", "\r\n", ":12x\r\n", "$-2\r\n\r\n", "*x\r\n",
                            "_\r\n", ",1.5\r\n", "#t\r\n", ">1\r\n:1\r\n", "%1\r\n:1\r\n:2\r\n"}) {
    ReplyReader reader;
    reader.feed(bytes);
    ASSERT_EQ(reader.next(), State::broken) << bytes;
    reader.feed("+OK\r\n");
    EXPECT_EQ(reader.next(), State::broken) << bytes;
  }
}

TEST(Reply, TheFirstWordOfAnErrorDecides) {
  ReplyReader reader;
  reader.feed("-NOSCRIPT whatever it says\r\n-BUSY\r\n");
  ASSERT_EQ(reader.next(), State::ready);
  EXPECT_EQ(reader.reply().first_word(), "NOSCRIPT");
  ASSERT_EQ(reader.next(), State::ready);
  EXPECT_EQ(reader.reply().first_word(), "BUSY");
}
