// Which keys the scripts touch: those they declare, of this lease alone, none of them for ever.
#include <algorithm>
#include <future>
#include <thread>

#include "queue_at_server.hpp"

namespace redlease {
namespace {

using namespace testing_support;

class QueueKeys : public QueueTest {
 protected:
  // All that can happen to a queue, in one go.
  void life_cycle() {
    hold();
    Waiter a(store, key, "a"), b(store, key, "b"), c(store, key, "c"), d(store, key, "d", 120s);
    a.enqueue();
    b.enqueue();
    c.enqueue();
    d.ask(Ask::reserve);
    d.ask(Ask::reserve);
    ask({.token = "old", .arrival = seconds_ago(60)});  // writes a sign of life
    plant(RawAsk{.token = "dead", .life = "1000"}.member(), seconds_ago(60));
    release();
    (void)store.inspect(key, ample());
    busy_try();
    c.ask(Ask::last);
    release("old");
    release(a.token());
    truth.del(key);
    b.ask();
    busy_try();
    (void)store.break_lease(key, ample());
    (void)store.break_lease(key, ample());
    d.seat().leave(ample());
    release("nobody");
    EXPECT_TRUE(free_try());
  }
  std::vector<std::string> keys_in(const std::vector<std::string>& command) {
    std::vector<std::string> argv{"COMMAND", "GETKEYS"};
    argv.insert(argv.end(), command.begin(), command.end());
    std::vector<std::string> keys;
    for (const RawReply& each : truth.command(argv).elements) keys.push_back(each.text);  // an error for those without
    return keys;
  }
  struct Seen {
    int checked{0}, undeclared{0};
    std::vector<std::string> lines;
  };
  Seen touched_by(Monitor& monitor) {
    Seen result;
    std::vector<std::string> declared;
    for (const MonitorLine& line : monitor.lines()) {
      if (!line.by_script()) {
        if (line.name() == "EVAL" || line.name() == "EVALSHA") declared = keys_in(line.argv);
        continue;
      }
      for (const std::string& each : keys_in(line.argv)) {
        ++result.checked;
        if (std::find(declared.begin(), declared.end(), each) != declared.end()) continue;
        ++result.undeclared;
        result.lines.push_back(line.line);
      }
    }
    return result;
  }
};

TEST_F(QueueKeys, EveryKeyThatAScriptTouchesIsDeclared) {
  Monitor monitor(server.tcp());
  life_cycle();
  const Seen seen_keys = touched_by(monitor);
  EXPECT_GT(seen_keys.checked, 50);
  EXPECT_EQ(seen_keys.undeclared, 0) << ::testing::PrintToString(seen_keys.lines);
}

TEST_F(QueueKeys, NoKeyIsWrittenWithoutAnExpiryInTheSameScript) {
  Monitor monitor(server.tcp());
  life_cycle();
  std::vector<std::string> open;  // sets and hashes that were written and have no expiry yet
  int writes = 0;
  for (const MonitorLine& line : monitor.lines()) {
    if (!line.by_script()) {
      EXPECT_TRUE(open.empty()) << open.front() << " before " << line.line;
      open.clear();
      continue;
    }
    const std::string name = line.name();
    if (name == "SET") {
      ++writes;
      EXPECT_EQ(line.argv.at(3), "PX") << line.line;
    } else if (name == "ZADD" || name == "HSET") {
      ++writes;
      open.push_back(line.argv.at(1));
    } else if (name == "PEXPIRE") {
      std::erase(open, line.argv.at(1));
    }
  }
  EXPECT_GT(writes, 10);
}

TEST_F(QueueKeys, NothingButTheMetaIsLeftWhenAllIsOver) {
  life_cycle();
  release("passer-by");
  EXPECT_FALSE(truth.exists(key));
  EXPECT_FALSE(truth.exists(queue));
  EXPECT_FALSE(truth.exists(seen));
  EXPECT_GT(truth.pttl(meta), 0);
}

TEST_F(QueueKeys, SomethingElseInPlaceOfTheQueueKeepsNoReleaseFromFreeingAndATryWorks) {
  truth.set(queue, "somebody's");
  hold();
  Waiter a(store, key, "a");
  a.subscribe();
  (void)only<Busy>(a.ask());  // without a place: it asks again and again
  EXPECT_EQ(release(), ReleaseOutcome::released);
  EXPECT_FALSE(truth.exists(key));
  EXPECT_TRUE(free_try());
  EXPECT_EQ(store.inspect(key, ample()).value().waiters, 0U);
  EXPECT_TRUE(store.break_lease(key, ample()).value());
  EXPECT_EQ(truth.get(queue), "somebody's");
  truth.del(queue);
}

TEST_F(QueueKeys, SomethingElseInPlaceOfTheSignsOfLifeIsLeftAlone) {
  truth.set(seen, "somebody's");
  hold();
  ask({.token = "old", .arrival = seconds_ago(40)});
  Waiter a(store, key, "a");
  a.enqueue();
  EXPECT_EQ(release(), ReleaseOutcome::released);
  EXPECT_EQ(holder(), "old") << "its lifetime is a minute";
  EXPECT_EQ(release("old"), ReleaseOutcome::released);
  EXPECT_TRUE(a.hears());
  EXPECT_EQ(truth.get(seen), "somebody's");
  EXPECT_EQ(truth.pttl(seen), -1);
  truth.del(seen);
}

TEST_F(QueueKeys, SomethingElseInPlaceOfTheMetaIsNamedByATryAndKeepsNoReleaseFromHandingOver) {
  hold();
  Waiter a(store, key, "a");
  a.enqueue();
  truth.del(meta);
  truth.command({"HSET", meta, "f", "v"});
  EXPECT_EQ(release(), ReleaseOutcome::released);
  EXPECT_EQ(holder(), a.token());
  EXPECT_EQ(release(a.token()), ReleaseOutcome::released);
  truth.del(meta);
  truth.command({"HSET", meta, "f", "v"});
  const Acquisition outcome = store.acquire({.key = key, .token = "t", .ttl = 30s}, ample());
  const auto* error = std::get_if<Error>(&outcome);
  ASSERT_NE(error, nullptr);
  EXPECT_TRUE(contains(error->detail, meta)) << error->detail;
  truth.del(meta);
}

TEST_F(QueueKeys, NamesWithBracesHaveQueuesOfTheirOwn) {
  std::vector<std::string> names;
  for (const char* tail : {"", ":{x}", "}b{", "{}", "{a}{b}", "{", "}"}) names.push_back(key + tail);
  names.push_back(key + ":{" + key + "}");
  std::vector<std::unique_ptr<Waiter>> waiters;
  for (const std::string& name : names) {
    const Acquisition held = store.acquire({.key = name, .token = "holder", .ttl = 60s}, ample());
    ASSERT_TRUE(std::holds_alternative<Granted>(held)) << name;
    waiters.push_back(std::make_unique<Waiter>(store, name, name));
    EXPECT_EQ(waiters.back()->enqueue().place.ahead, 0U) << name;
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(store.inspect(names[i], ample()).value().waiters, 1U) << names[i];
    EXPECT_EQ(store.release(names[i], "holder", ample()).outcome, ReleaseOutcome::released);
    EXPECT_EQ(truth.get(names[i]), waiters[i]->token());
    EXPECT_TRUE(waiters[i]->hears()) << names[i];
    EXPECT_EQ(store.inspect(names[i], ample()).value().label, names[i]);
  }
}

TEST_F(QueueKeys, TheSameNameInTwoDatabasesHasTwoQueues) {
  RedisStore elsewhere(parse_endpoint(server.url_tcp() + "/1"));
  hold();
  ASSERT_TRUE(std::holds_alternative<Granted>(elsewhere.acquire({.key = key, .token = "holder", .ttl = 60s}, ample())));
  Waiter here(store, key, "here"), there(elsewhere, key, "there");
  EXPECT_EQ(here.enqueue().place.ahead, 0U);
  EXPECT_EQ(there.enqueue().place.ahead, 0U);
  EXPECT_EQ(elsewhere.release(key, "holder", ample()).outcome, ReleaseOutcome::released);
  EXPECT_TRUE(there.hears());
  EXPECT_EQ(holder(), "holder");
  EXPECT_FALSE(here.hears(20ms));
  release();
  EXPECT_TRUE(here.hears());
}

TEST_F(QueueKeys, TheSameNameUnderTwoPrefixesHasTwoQueues) {
  Client one(server.url_tcp(), {.key_prefix = "one:"}), two(server.url_tcp(), {.key_prefix = "two:"});
  Lease of_one = taken(one, key), of_two = taken(two, key);
  auto waiting = std::async(std::launch::async, [&] { return one.acquire(key, {.ttl = 60s, .wait = 60s}); });
  ASSERT_TRUE(eventually([&] { return one.inspect(key).value().waiters == 1; }, 20s));
  EXPECT_EQ(two.inspect(key).value().waiters, 0U);
  EXPECT_TRUE(truth.exists(helper_name("one:" + key, queue_suffix)));
  EXPECT_EQ(of_two.release(), ReleaseOutcome::released);
  EXPECT_EQ(truth.get("one:" + key), of_one.token().str());
  EXPECT_FALSE(truth.exists("two:" + key));
  EXPECT_EQ(of_one.release(), ReleaseOutcome::released);
  EXPECT_EQ(lease_of(waiting.get()).release(), ReleaseOutcome::released);
  EXPECT_FALSE(truth.exists(helper_name("one:" + key, queue_suffix)));
}

}  // namespace
}  // namespace redlease
