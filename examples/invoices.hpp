#pragma once
// The file of invoices that every night posts.
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "example.hpp"

struct Invoice {
  std::string number, customer;
  std::int64_t cents{};
};

inline std::vector<Invoice> read_invoices() {
  std::ifstream file(INVOICES);
  std::vector<Invoice> invoices;
  std::string number, customer, units, cents;
  std::getline(file, number);  // the headings
  while (std::getline(file, number, ',') && std::getline(file, customer, ',') && std::getline(file, units, '.') &&
         std::getline(file, cents)) {
    invoices.push_back({number, customer, std::stoll(units) * 100 + std::stoll(cents)});
  }
  expect(!invoices.empty(), "the file of invoices is there: " INVOICES);
  return invoices;
}
