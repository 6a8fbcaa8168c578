#pragma once
// The little of SQLite that the examples need.
#include <sqlite3.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <variant>

class Database {
 public:
  using Value = std::variant<std::int64_t, std::string>;

  explicit Database(const std::string& file) {
    sqlite3* opened = nullptr;
    const int status = ::sqlite3_open(file.c_str(), &opened);
    db_.reset(opened);
    check(status);
    check(::sqlite3_busy_timeout(opened, 10'000));
  }

  // One statement; answers how many rows it changed.
  int run(const char* sql, std::initializer_list<Value> values = {}) {
    step(sql, values);
    return ::sqlite3_changes(db_.get());
  }

  // One query; answers the first column of its first row.
  std::int64_t number(const char* sql, std::initializer_list<Value> values = {}) {
    return ::sqlite3_column_int64(step(sql, values).get(), 0);
  }

 private:
  using Statement = std::unique_ptr<sqlite3_stmt, decltype(&::sqlite3_finalize)>;

  Statement step(const char* sql, std::initializer_list<Value> values) {
    sqlite3_stmt* prepared = nullptr;
    check(::sqlite3_prepare_v2(db_.get(), sql, -1, &prepared, nullptr));
    Statement statement(prepared, &::sqlite3_finalize);
    int place = 0;
    for (const Value& value : values) {
      ++place;
      const auto* text = std::get_if<std::string>(&value);
      check(text != nullptr ? ::sqlite3_bind_text(prepared, place, text->c_str(), -1, SQLITE_TRANSIENT)
                            : ::sqlite3_bind_int64(prepared, place, std::get<std::int64_t>(value)));
    }
    if (const int status = ::sqlite3_step(prepared); status != SQLITE_DONE && status != SQLITE_ROW) check(status);
    return statement;
  }

  void check(int status) const {
    if (status != SQLITE_OK) throw std::runtime_error(std::string("SQLite: ") + ::sqlite3_errmsg(db_.get()));
  }

  std::unique_ptr<sqlite3, decltype(&::sqlite3_close)> db_{nullptr, &::sqlite3_close};
};
