#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace redlease::cli {

/// Writes to stdout at once. Throws Failure (no_output) if it cannot, also if the reader has gone (no_reader): a token
/// that nobody saw must not stay behind.
void print(std::string_view);

/// For people, on stderr, as "redlease: text" and a line end. Where that cannot be written, nobody is there to be told.
void print_error(std::string_view);

/// Without the "redlease: " that the library's own exceptions begin with, which print_error says.
std::string_view without_speaker(std::string_view text) noexcept;

/// What comes from a server or another process, made fit for a terminal: control characters and what is not UTF-8 as
/// \xNN.
std::string printable(std::string_view);

/// How many bytes at the beginning of a text that is not empty are one character of UTF-8 that may be shown; 0: none.
std::size_t character_size(std::string_view) noexcept;

/// To stderr, as it is; whether that succeeds or not. What nobody takes within a second is dropped.
void put_error(std::string_view) noexcept;

enum class Tint { plain, good, bad, warn, faint };

/// How stdout and stderr may be written to. Colours only on a terminal, and not if NO_COLOR is set or TERM is "dumb".
struct Screen {
  explicit Screen(int descriptor);
  bool terminal;
  bool movable;  ///< its cursor, too
  bool colours;
  std::string tinted(Tint, std::string_view) const;
  /// Of a terminal, in columns and rows; 80 by 24 if it does not tell.
  int columns() const;
  int rows() const;

 private:
  int descriptor_;
};

}  // namespace redlease::cli
