#pragma once
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "fork.hpp"

namespace redlease {
inline namespace v0 {

// Wakes one thread that polls descriptors. Once rung it can be read until it is silenced.
class Bell {
 public:
  // Throws std::system_error if there is no descriptor left.
  Bell() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (fd_.get() < 0) throw std::system_error(errno, std::system_category(), "redlease: no descriptor to be woken by");
  }
  int descriptor() const noexcept { return fd_.get(); }
  void ring() const noexcept {
    const std::uint64_t one = 1;
    (void)!::write(fd_.get(), &one, sizeof one);
  }
  void silence() const noexcept {
    std::uint64_t rings = 0;
    (void)!::read(fd_.get(), &rings, sizeof rings);
  }

 private:
  OwnedFd fd_;
};

}  // namespace v0
}  // namespace redlease
