#pragma once
// What a server did to one lease, in the order in which it did it: its append-only file, read and judged.
#include <cstdint>
#include <string>
#include <vector>

namespace redlease {
inline namespace v0 {

using AofCommand = std::vector<std::string>;

/// Lines for redis.conf.
std::vector<std::string> keep_a_history();

/// All that the server in this directory has written since it started, in order. Throws std::runtime_error if there is
/// none.
std::vector<AofCommand> read_history(const std::string& server_dir);

struct History {
  std::size_t grants{};       ///< of K, to whomever
  std::size_t ours{};         ///< of them, those that came with a fence
  std::size_t handed_over{};  ///< of them, those to the first in the queue while another's token stood there
  std::size_t renewals{};     ///< of K
  std::size_t removals{};     ///< of K, by a release or by the server when its time was over
  std::size_t writes{};       ///< to the resource
  std::vector<std::string> flaws;
};

/// It cannot see whether the one who released was the holder, which is not in the file. The rules: nobody is granted K
/// while another's token stands there, unless he leaves the front of the queue in the same transaction (a release or a
/// break that hands over); K never stands without an expiry, and no renewal shortens it or makes it; a grant of ours
/// has its fence in the same transaction; fences grow from grant to grant; the resource (a hash by fenced_set, whose
/// values are tokens) never goes back to an older fence nor takes one fence from two tokens.
History judge(const std::vector<AofCommand>&, const std::string& key, const std::string& resource = "");

}  // namespace v0
}  // namespace redlease
