#pragma once
// Where the nightly run posts its invoices: a resource that checks fences.
#include <redlease/redlease.hpp>

#include "invoices.hpp"
#include "sqlite.hpp"

class Ledger {
 public:
  explicit Ledger(const std::string& file) : db_(file) {
    db_.run("PRAGMA synchronous = OFF");  // waiting for the disk is for power cuts, which this story leaves out
    db_.run("CREATE TABLE IF NOT EXISTS book(id INTEGER PRIMARY KEY, fence INTEGER NOT NULL)");
    db_.run(
        "CREATE TABLE IF NOT EXISTS entry(line INTEGER PRIMARY KEY, night INTEGER, invoice TEXT, cents INTEGER, "
        "fence INTEGER, UNIQUE(night, invoice))");
  }

  // From now on every older fence is refused. To be called before anything is read, so that nothing older can slip in
  // behind what was read. False: a newer one has been here.
  bool open_book(redlease::FencingToken fence) {
    return db_.run(
               "INSERT INTO book VALUES (1, ?1) ON CONFLICT(id) DO UPDATE SET fence = excluded.fence "
               "WHERE fence <= excluded.fence",
               {static_cast<std::int64_t>(fence)}) == 1;
  }

  // Checks the fence and posts in one statement. False: a newer one has opened the book.
  bool post(std::int64_t night, const Invoice& invoice, redlease::FencingToken fence) {
    return db_.run("INSERT INTO entry(night, invoice, cents, fence) SELECT ?1, ?2, ?3, ?4 FROM book WHERE fence = ?4",
                   {night, invoice.number, invoice.cents, static_cast<std::int64_t>(fence)}) == 1;
  }

  std::int64_t posted(std::int64_t night) {
    return db_.number("SELECT count(DISTINCT invoice) FROM entry WHERE night = ?1", {night});
  }

  std::int64_t lines(std::int64_t night) { return db_.number("SELECT count(*) FROM entry WHERE night = ?1", {night}); }

  std::int64_t cents(std::int64_t night) {
    return db_.number("SELECT sum(cents) FROM entry WHERE night = ?1", {night});
  }

  std::int64_t leases(std::int64_t night) {
    return db_.number("SELECT count(DISTINCT fence) FROM entry WHERE night = ?1", {night});
  }

  std::int64_t stale_lines() {
    return db_.number("SELECT count(*) FROM entry a JOIN entry b ON a.line < b.line AND a.fence > b.fence");
  }

 private:
  Database db_;
};
