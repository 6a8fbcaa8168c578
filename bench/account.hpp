#pragma once
// What a server has done so far, by its own accounts.
#include <map>
#include <string>

#include "raw.hpp"

namespace bench {

struct Account {
  std::map<std::string, double> commands{};  // that came from clients, by name: what scripts call is not counted
  double cpu{};                              // µs, user and system
};

// Not all commands: the driver's own and those that a script of the library calls too are left out. In the middle of
// the work what is left is EVALSHA, PING, SUBSCRIBE and the like, and the floor's BLPOP and LPUSH.
Account account_of(Raw&);

// What came in between.
Account operator-(const Account& after, const Account& before);
double sum(const std::map<std::string, double>&);

// All commands, also those inside of scripts.
double commands_served(Raw&);

// How many connections it takes.
double most_connections(Raw&);

}  // namespace bench
