#include "fork.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <thread>

namespace redlease {
inline namespace v0 {
namespace {

struct Pair {
  OwnedFd ours;
  int peer{-1};
  Pair() {
    std::array<int, 2> fds{-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
    ours = OwnedFd(fds[0]);
    peer = fds[1];
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  ~Pair() { ::close(peer); }
};

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

// What the child's check returned; 0 is well.
template <class Check>
int in_child(Check check) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(check());
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Fork, GenerationGrowsInEveryChildAndNeverInTheParent) {
  const std::uint64_t before = fork_generation();
  EXPECT_EQ(in_child([&] {
              if (fork_generation() != before + 1) return 1;
              return in_child([&] { return fork_generation() == before + 2 ? 0 : 2; });
            }),
            0);
  EXPECT_EQ(fork_generation(), before);
}

TEST(Fork, ChildFindsTheSocketClosedAndTheParentsConnectionLivesOn) {
  Pair pair;
  const int number = pair.ours.get();
  EXPECT_EQ(in_child([&] {
              if (pair.ours.get() != -1) return 1;
              return is_open(number) ? 2 : 0;
            }),
            0);
  EXPECT_EQ(pair.ours.get(), number);
  char byte = 'x';
  EXPECT_EQ(::send(pair.peer, &byte, 1, MSG_NOSIGNAL), 1);
  EXPECT_EQ(::recv(number, &byte, 1, 0), 1);
  EXPECT_EQ(::send(number, &byte, 1, MSG_NOSIGNAL), 1);
  EXPECT_EQ(::recv(pair.peer, &byte, 1, 0), 1);
}

TEST(Fork, ChildsDestructorDoesNotCloseANumberThatWasGivenOutAnew) {
  auto pair = std::make_unique<Pair>();
  const int number = pair->ours.get();
  EXPECT_EQ(in_child([&] {
              if (::dup2(STDERR_FILENO, number) != number) return 1;
              pair->ours = OwnedFd{};
              return is_open(number) ? 0 : 2;
            }),
            0);
}

TEST(Fork, ASlotWhoseOwnerLivesOnInTheChildIsNotGivenToAnother) {
  Pair inherited;
  EXPECT_EQ(in_child([&] {
              Pair own;
              const int number = own.ours.get();
              if (inherited.ours.get() != -1) return 1;
              inherited.ours = OwnedFd{};
              return own.ours.get() == number && is_open(number) ? 0 : 2;
            }),
            0);
}

TEST(OwnedFd, IsShutDownSoThatACopyElsewhereKeepsNothingAlive) {
  Pair pair;
  const int copy = ::dup(pair.ours.get());
  ASSERT_GE(copy, 0);
  pair.ours = OwnedFd{};
  char byte = 0;
  EXPECT_EQ(::recv(pair.peer, &byte, 1, MSG_DONTWAIT), 0) << "the other end must see the close";
  ::close(copy);
}

TEST(OwnedFd, ClosesWhatItOwnsAndMovesWithoutClosing) {
  Pair pair;
  const int number = pair.ours.get();
  {
    OwnedFd moved(std::move(pair.ours));
    EXPECT_EQ(moved.get(), number);
    EXPECT_EQ(pair.ours.get(), -1);  // NOLINT(bugprone-use-after-move): that it is empty is the point
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
  EXPECT_EQ(OwnedFd{}.get(), -1);
  EXPECT_EQ(OwnedFd{-1}.get(), -1);
}

TEST(Fork, WhileOtherThreadsOpenAndCloseSocketsClosesNothingOfStrangers) {
  std::array<int, 2> stranger{-1, -1};
  ASSERT_EQ(::pipe2(stranger.data(), O_CLOEXEC), 0);
  std::atomic<bool> stop{false};
  std::atomic<int> made{0};
  {
    const auto churn = [&] {
      while (!stop) {
        const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const OwnedFd owned(fd);
        EXPECT_EQ(owned.get(), fd);
        ++made;
      }
    };
    std::jthread first(churn);
    std::jthread second(churn);
    for (int i = 0; i < 50; ++i) {
      const int seen = made;
      EXPECT_EQ(in_child([&] { return is_open(stranger[0]) && is_open(stranger[1]) ? 0 : 1; }), 0);
      while (made == seen) std::this_thread::yield();
    }
    stop = true;
  }
  ::close(stranger[0]);
  ::close(stranger[1]);
}

TEST(PerProcess, GivesTheChildAValueOfItsOwn) {
  int made = 0;
  PerProcess<int> value([&] { return new int(++made); });
  EXPECT_EQ(value.get(), 1);
  EXPECT_EQ(value.get(), 1);
  EXPECT_EQ(in_child([&] { return value.get() == 2 ? 0 : 1; }), 0);
  EXPECT_EQ(value.get(), 1);
}

}  // namespace
}  // namespace v0
}  // namespace redlease
