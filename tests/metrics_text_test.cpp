// What Prometheus reads, judged by its own promtool; and that the dashboard and the alerts ask for what there is.
#include <gtest/gtest.h>

#include <clocale>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <locale>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "redlease/metrics.hpp"
#include "support/temp_dir.hpp"

namespace redlease {
namespace {

using namespace std::chrono_literals;

// 0 if promtool finds nothing wrong. A promtool that is missing is a failure too.
int promtool(const std::string& check, const std::string& text) {
  const TempDir dir;
  const std::string file = dir.path() + "/input";
  std::ofstream(file) << text;
  return std::system(("promtool check " + check + " " + file + " >&2").c_str());
}

std::string document(const std::string& name) {
  std::ifstream file(REDLEASE_SOURCE_DIR "/docs/" + name);
  if (!file) throw std::runtime_error("no docs/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> all_of(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match) {
    found.push_back((*match)[1]);
  }
  return found;
}

std::string replaced(const std::string& text, const std::string& pattern, const std::string& by) {
  return std::regex_replace(text, std::regex(pattern), by);
}

// Some of everything.
std::string some_text() {
  Metrics metrics;
  metrics.acquired({.elapsed = 1234567ns});
  metrics.busy({.elapsed = 3h});
  metrics.waiting({});
  metrics.waited({.elapsed = 12345s, .attempts = 1234567});
  metrics.lost({.held = 1s, .loss = LossCause::taken});
  metrics.renewed({.slack = 20s});
  metrics.unheard({});
  metrics.stalled({.elapsed = 1500ms});
  return metrics.to_prometheus();
}

TEST(MetricsText, IsFoundFaultlessByPrometheus) {
  EXPECT_EQ(promtool("metrics <", some_text()), 0);
  EXPECT_EQ(promtool("metrics <", Metrics().to_prometheus()), 0);
  EXPECT_NE(promtool("metrics <", some_text() + "redlease_acquires_total 5\n# TYPE redlease_acquires_total gauge\n"), 0)
      << "this promtool sees nothing";
}

TEST(MetricsText, HasTheNumbersOfTheSnapshot) {
  const std::string text = some_text();
  for (const char* line : {
           "# TYPE redlease_acquires_total counter\n",
           "redlease_acquires_total{outcome=\"acquired\"} 1\n",
           "redlease_acquires_total{outcome=\"unknown\"} 0\n",
           "# TYPE redlease_acquire_duration_seconds histogram\n",
           "redlease_acquire_duration_seconds_bucket{le=\"0.0001\"} 0\n",
           "redlease_acquire_duration_seconds_bucket{le=\"0.001\"} 0\n",
           "redlease_acquire_duration_seconds_bucket{le=\"0.0025\"} 1\n",
           "redlease_acquire_duration_seconds_bucket{le=\"60\"} 1\n",
           "redlease_acquire_duration_seconds_bucket{le=\"+Inf\"} 2\n",
           "redlease_acquire_duration_seconds_sum 10800.001234567\n",
           "redlease_acquire_duration_seconds_count 2\n",
           "redlease_wait_attempts_total 1234567\n",
           "redlease_losses_total{cause=\"taken\"} 1\n",
           "redlease_unheard_total 1\n",
           "redlease_stalled_seconds_total 1.5\n",
           "# TYPE redlease_leases_held gauge\n",
           "redlease_leases_held 0\n",
       }) {
    EXPECT_NE(text.find(line), text.npos) << line << text;
  }
}

TEST(MetricsText, IsTheSameInEveryLocale) {
  struct Commas : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::string plain = some_text();
  const std::locale before = std::locale::global(std::locale(std::locale(), new Commas));
  for (const char* german : {"de_DE.UTF-8", "de_DE"}) std::setlocale(LC_ALL, german);  // where there is one
  EXPECT_EQ(some_text(), plain);
  std::setlocale(LC_ALL, "C");
  std::locale::global(before);
}

// Samples' names, as "redlease_losses_total" and "redlease_wait_duration_seconds_bucket".
std::set<std::string> names_in(const std::string& text) {
  const auto names = all_of(text, "(redlease_[a-z_]+)");
  return {names.begin(), names.end()};
}

TEST(MetricsText, IsAllThatTheDocumentsNameAndTheyNameAll) {
  const std::set<std::string> there = names_in(replaced(some_text(), "# [^\n]*\n", ""));
  for (const char* name : {"grafana-dashboard.json", "alerts.yml"}) {
    const std::set<std::string> asked = names_in(document(name));
    EXPECT_GE(asked.size(), 4U) << name;
    for (const auto& metric : asked) EXPECT_TRUE(there.contains(metric)) << metric << " of " << name;
  }
  const auto families = all_of(some_text(), "# TYPE ([a-z_]+)");
  const std::string table = document("metrics.md");
  EXPECT_EQ(all_of(table, "\n\\| `(redlease_[a-z_]+)[{`]"), families);
  const std::string dashboard = document("grafana-dashboard.json");
  for (const auto& family : families) EXPECT_NE(dashboard.find(family), dashboard.npos) << family;
}

TEST(MetricsText, IsAskedForInRealPromQl) {
  EXPECT_EQ(promtool("rules", document("alerts.yml")), 0);
  // The dashboard's questions as rules, with what Grafana would put in.
  std::string rules = "groups:\n- name: dashboard\n  rules:\n";
  const auto questions = all_of(document("grafana-dashboard.json"), R"re("expr": "((\\.|[^"\\])+)")re");
  EXPECT_GE(questions.size(), 15U);
  for (const auto& question : questions) {
    rules += "  - record: a\n    labels: {n: \"" + std::to_string(rules.size()) + "\"}\n    expr: '" +
             replaced(replaced(question, R"(\\")", "\""), "\\$__(rate_interval|range)", "5m") + "'\n";
  }
  EXPECT_EQ(promtool("rules", rules), 0) << rules;
  EXPECT_NE(promtool("rules", "groups: [{name: a, rules: [{record: a, expr: 'rat(b[5m])'}]}]"), 0)
      << "this promtool sees nothing";
}

}  // namespace
}  // namespace redlease
