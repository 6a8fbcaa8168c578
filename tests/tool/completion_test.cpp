// The completions and the manual page know all that the tool knows, and nothing else.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tool/tool.hpp"

namespace redlease {
namespace {

using Words = std::set<std::string>;

// Offered and described before the tool has them. To be taken out with the command's coming: then it is compared.
const std::map<std::string, Words> to_come{
    {"run",
     {"--ttl", "--wait", "--stop-before", "--grace", "--max-hold", "--label", "--op-timeout", "--fence-floor",
      "--busy-exit"}},
};

std::string content(const std::string& file) {
  std::ifstream in(std::string(REDLEASE_SOURCE_DIR) + "/" + file, std::ios::binary);
  EXPECT_TRUE(in) << file;
  return {std::istreambuf_iterator<char>(in), {}};
}

// What a command prints, standard error included, and its exit status.
std::pair<std::string, int> output_of(const std::string& command) {
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::string out;
  std::array<char, 4096> buffer{};
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) out.append(buffer.data(), n);
  return {out, ::pclose(pipe)};
}

std::string help(std::vector<std::string> arguments) {
  arguments.emplace_back("--help");
  const auto result = run_tool(arguments);
  EXPECT_EQ(result.exit, 0) << result.err;
  return result.out;
}

// The long options in these lines of --help.
Words options_in(const std::string& text) {
  Words out;
  const std::regex option(R"(^  (?:-[a-z],)?(--[a-z-]+))", std::regex::multiline);
  for (std::sregex_iterator it(text.begin(), text.end(), option), end; it != end; ++it) out.insert((*it)[1]);
  return out;
}

std::string after(const std::string& text, const std::string& mark) {
  const auto at = text.find(mark);
  EXPECT_NE(at, text.npos) << mark;
  return at == text.npos ? "" : text.substr(at);
}

// Of the tool at hand.
Words own_commands() {
  Words out;
  const std::string text = after(help({}), "\nSubcommands:\n");
  const std::regex command(R"(^  ([a-z]+)  )", std::regex::multiline);
  for (std::sregex_iterator it(text.begin(), text.end(), command), end; it != end; ++it) out.insert((*it)[1]);
  EXPECT_GT(out.size(), 8U);
  return out;
}

Words commands() {
  Words out = own_commands();
  for (const auto& [name, options] : to_come) out.insert(name);
  return out;
}

// Without --help, which all have.
std::map<std::string, Words> options_by_command() {
  std::map<std::string, Words> out;
  for (const auto& [command, options] : to_come) out[command] = options;
  for (const auto& command : own_commands()) {
    out[command] = options_in(help({command}));
    out[command].erase("--help");
  }
  out["every"] = options_in(after(help({}), "\nEvery command:\n"));
  return out;
}

// The long options in each branch of a script's `case`.
std::map<std::string, Words> options_in_cases(const std::string& script) {
  std::map<std::string, Words> out;
  const std::regex branch(R"(^ +([a-z]+)\)([^;]*);;)", std::regex::multiline);
  const std::regex option(R"(--[a-z][a-z-]*)");
  for (std::sregex_iterator it(script.begin(), script.end(), branch), end; it != end; ++it) {
    const std::string body = (*it)[2];
    Words& words = out[(*it)[1]];
    for (std::sregex_iterator at(body.begin(), body.end(), option); at != end; ++at) words.insert(at->str());
  }
  return out;
}

Words completed(const std::string& words) {
  std::string script = ". '" REDLEASE_SOURCE_DIR "/src/cli/completions/redlease.bash'; COMP_WORDS=(" + words + ")";
  script += R"(; COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _redlease; printf "%s\n" "${COMPREPLY[@]}")";
  const TempDir directory;
  std::ofstream(directory.path() + "/script") << script;
  const auto [out, status] = output_of("bash " + directory.path() + "/script");
  EXPECT_EQ(status, 0) << out;
  std::istringstream lines(out);
  Words all;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) all.insert(line);
  }
  return all;
}

Words joined(Words one, const Words& other) {
  one.insert(other.begin(), other.end());
  return one;
}

TEST(Completion, OfBashOffersJustWhatTheToolHas) {
  auto expected = options_by_command();
  const Words every = joined(expected["every"], {"--help"});
  expected.erase("every");
  EXPECT_EQ(completed("redlease ''"), joined(joined(commands(), every), {"--version"}));
  for (const auto& [command, options] : expected) {
    EXPECT_EQ(completed("redlease " + command + " --"), joined(options, every)) << command;
    EXPECT_EQ(completed("redlease --json --prefix x: " + command + " key --"), joined(options, every)) << command;
  }
}

TEST(Completion, OfBashKnowsWhatAnOptionTakes) {
  EXPECT_EQ(completed("redlease ac"), Words{"acquire"});
  EXPECT_EQ(completed("redlease wait key --wait f"), Words{"forever"});
  EXPECT_EQ(completed("redlease wait key --wait = f"), Words{"forever"});
  EXPECT_EQ(completed("redlease acquire key --label ''"), Words{});
  EXPECT_EQ(completed("redlease acquire key --label --"), Words{});
  EXPECT_EQ(completed("redlease show ''"), Words{});
  EXPECT_EQ(completed("redlease trace key --output '" REDLEASE_SOURCE_DIR "/LICEN'"),
            Words{REDLEASE_SOURCE_DIR "/LICENSE"});
  EXPECT_EQ(completed("redlease run key -- bas").count("bash"), 1U);
  EXPECT_EQ(completed("redlease run key -- bash --"), Words{});
}

TEST(Completion, OfZshIsSoundAndOffersJustWhatTheToolHas) {
  const auto [said, status] = output_of("zsh -n '" REDLEASE_SOURCE_DIR "/src/cli/completions/_redlease'");
  EXPECT_EQ(status, 0) << said;
  const std::string script = content("src/cli/completions/_redlease");
  auto offered = options_in_cases(script);
  const std::regex option(R"(--[a-z][a-z-]*)");
  const std::string common = script.substr(0, script.find("\n)\n"));
  for (std::sregex_iterator it(common.begin(), common.end(), option), end; it != end; ++it) {
    offered["every"].insert(it->str());
  }
  offered["every"].erase("--help");
  for (const auto& [command, options] : options_by_command()) EXPECT_EQ(offered[command], options) << command;
  Words described;
  const std::regex one(R"(^    '([a-z]+):[^']+'$)", std::regex::multiline);
  for (std::sregex_iterator it(script.begin(), script.end(), one), end; it != end; ++it) described.insert((*it)[1]);
  EXPECT_EQ(described, commands());
}

TEST(Manual, KnowsEveryCommandAndOption) {
  const std::string page = content("docs/redlease.1");
  for (const auto& [command, options] : options_by_command()) {
    if (command != "every") {
      EXPECT_NE(page.find("\n.Ss " + command + "\n"), page.npos) << command;
    }
    for (const auto& option : options) {
      EXPECT_TRUE(std::regex_search(page, std::regex("\\bFl " + option.substr(1) + "[ \n]")))
          << command << " " << option;
    }
  }
}

TEST(Manual, HasNoOptionThatTheToolLacks) {
  Words known{"--help", "--version"};
  for (const auto& [command, options] : options_by_command()) known = joined(known, options);
  std::string page = content("docs/redlease.1");
  const std::regex option(R"(\bFl -([a-z-]+))");
  for (std::sregex_iterator it(page.begin(), page.end(), option), end; it != end; ++it) {
    EXPECT_TRUE(known.contains("--" + (*it)[1].str())) << it->str();
  }
}

TEST(Manual, IsSound) {
  const auto [said, status] = output_of("mandoc -T lint -W warning '" REDLEASE_SOURCE_DIR "/docs/redlease.1'");
  EXPECT_EQ(status, 0) << said;
}

}  // namespace
}  // namespace redlease
