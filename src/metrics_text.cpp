#include <array>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "redlease/metrics.hpp"

namespace redlease {
inline namespace v0 {

namespace {

class Exposition {
 public:
  template <class Value>
  void single(std::string_view name, std::string_view type, std::string_view help, Value value) {
    family(name, type, help);
    sample({name}, value);
  }

  using Labelled = std::pair<std::string_view, std::uint64_t>;
  void counters(std::string_view name, std::string_view help, std::string_view label,
                std::initializer_list<Labelled> all) {
    family(name, "counter", help);
    for (const auto& [value, n] : all) sample({name, "{", label, "=\"", value, "\"}"}, n);
  }

  void histogram(std::string_view name, std::string_view help, const DurationHistogram& all) {
    family(name, "histogram", help);
    for (const auto& bucket : all.buckets) {
      add({"redlease_", name, "_bucket{le=\""});
      add(bucket.le);
      add({"\"} "});
      add(bucket.count);
      add({"\n"});
    }
    sample({name, "_bucket{le=\"+Inf\"}"}, all.count);
    sample({name, "_sum"}, all.sum);
    sample({name, "_count"}, all.count);
  }

  std::string text() && { return std::move(text_); }

 private:
  using Parts = std::initializer_list<std::string_view>;

  void family(std::string_view name, std::string_view type, std::string_view help) {
    add({"# HELP redlease_", name, " ", help, "\n# TYPE redlease_", name, " ", type, "\n"});
  }
  template <class Value>
  void sample(Parts what, Value value) {
    add({"redlease_"});
    add(what);
    add({" "});
    add(value);
    add({"\n"});
  }

  void add(Parts parts) {
    for (const auto part : parts) text_ += part;
  }
  // Numbers by std::to_chars, since streams and std::to_string follow the locale.
  void add(std::uint64_t n) {
    std::array<char, 24> digits{};
    text_.append(digits.begin(), std::to_chars(digits.begin(), digits.end(), n).ptr);
  }
  void add(std::chrono::nanoseconds d) {
    std::array<char, 40> digits{};
    const double seconds = std::chrono::duration<double>(d).count();
    text_.append(digits.begin(), std::to_chars(digits.begin(), digits.end(), seconds, std::chars_format::fixed).ptr);
  }

  std::string text_;
};

}  // namespace

std::string Metrics::to_prometheus() const {
  const MetricsSnapshot s = snapshot();
  Exposition out;
  out.counters("acquires_total", "Tries to acquire a lease; one that waits makes several.", "outcome",
               {{"acquired", s.acquired}, {"busy", s.busy}, {"unknown", s.unknown}, {"unavailable", s.unavailable}});
  out.histogram("acquire_duration_seconds", "How long each try to acquire took, whatever its outcome.", s.acquire_time);

  out.single("waits_in_progress", "gauge", "Calls of acquire() that go on now.", s.waiting);
  out.histogram("wait_duration_seconds", "How long each acquire() took, however it ended.", s.wait_time);
  out.single("wait_attempts_total", "counter", "Tries made by acquire() calls that are over.", s.wait_attempts);

  out.single("leases_held", "gauge", "Leases that are held now.", s.held);
  out.histogram("hold_duration_seconds", "How long each lease was held, until it was released or lost.", s.hold_time);

  out.counters("renewals_total", "Renewals that moved the deadline, and those that could not; a loss is neither.",
               "outcome", {{"ok", s.renewed}, {"failed", s.renew_failed}});
  out.histogram("renewal_slack_seconds", "How far before the old deadline each renewal came.", s.renew_slack);

  out.counters("losses_total", "Leases that were lost while held.", "cause",
               {{"deadline", s.lost_by_deadline},
                {"gone", s.lost_gone},
                {"taken", s.lost_taken},
                {"max_hold", s.lost_by_max_hold}});

  out.counters("releases_total", "Releases that gave a lease back, and those that could not.", "outcome",
               {{"ok", s.released}, {"failed", s.release_failed}});

  out.single("unknown_outcomes_total", "counter", "Acquires, renewals and releases sent and never answered.",
             s.unknown_outcomes);
  out.counters("orphans_total", "Leases left on the server by unknown outcomes: withdrawn, or given up.", "outcome",
               {{"withdrawn", s.orphans_withdrawn}, {"dropped", s.orphans_dropped}});

  out.counters("connects_total", "Connections made to a server, the first ones included, or tried in vain.", "outcome",
               {{"ok", s.connected}, {"failed", s.connect_failed}});

  out.single("unheard_total", "counter", "Clients whose waiters can not be woken at the server, and ask instead.",
             s.unheard);

  out.single("stalls_total", "counter", "Times that this process did not run when it should have.", s.stalls);
  out.single("stalled_seconds_total", "counter", "How long this process did not run when it should have.",
             s.stalled_time);
  return std::move(out).text();
}

}  // namespace v0
}  // namespace redlease
