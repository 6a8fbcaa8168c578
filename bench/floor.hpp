#pragma once
// The plain lock that everybody writes first: SET NX PX, and a compare-and-delete. No fence, no holder, no queue.
#include <string>

#include "raw.hpp"

namespace bench {

class PlainLock {
 public:
  PlainLock(Raw& raw, const std::string& key)
      : raw_(raw),
        token_(49, 'p'),
        lock_({"SET", key, token_, "NX", "PX", "30000"}),
        unlock_({"EVALSHA", loaded(raw), "1", key, token_}) {}

  void cycle() {
    raw_.call(lock_);
    raw_.call(unlock_);
  }

 private:
  static std::string loaded(Raw& raw) {
    return raw
        .call({"SCRIPT", "LOAD",
               "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"})
        ->str;
  }

  Raw& raw_;
  std::string token_;
  Prepared lock_, unlock_;
};

}  // namespace bench
