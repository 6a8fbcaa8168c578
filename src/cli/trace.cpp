// trace: who held and who waited over a while, as a drawing.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/commands.hpp"
#include "cli/duration.hpp"
#include "cli/duration_option.hpp"
#include "cli/exit_code.hpp"
#include "cli/follower.hpp"
#include "cli/out_file.hpp"
#include "cli/output.hpp"
#include "cli/stop_on_signal.hpp"
#include "cli/timeline.hpp"
#include "cli/timeline_svg.hpp"
#include "nap.hpp"

namespace redlease::cli {
namespace {

using namespace std::chrono_literals;

struct Given {
  std::vector<std::string> keys;
  std::optional<std::string> pattern;
  Millis length{30'000}, interval{100};
  std::string output;
};

Json json_of(const Timeline& timeline, const Caption& caption, const Context& context) {
  Json keys = Json::array();
  for (const KeyTimeline& key : timeline.keys) {
    Json spans = Json::array(), unseen = Json::array(), silent = Json::array();
    for (const Lane& lane : key.lanes) {
      for (const Span& span : lane.spans) {
        Json one{{"who", lane.who}, {"what", span.held ? "held" : "waited"}};
        one["from_ms"] = span.from.count();
        one["to_ms"] = span.to.count();
        one["fence"] = static_cast<std::uint64_t>(span.fence);
        one["began_before"] = span.began_before;
        one["goes_on"] = span.goes_on;
        one["expired"] = span.expired;
        spans.push_back(std::move(one));
      }
    }
    for (const Millis at : key.unseen) unseen.push_back(at.count());
    for (const auto& [from, to] : key.silent) silent.push_back({{"from_ms", from.count()}, {"to_ms", to.count()}});
    keys.push_back({{"key", key.key}, {"spans", std::move(spans)}, {"unseen_ms", std::move(unseen)}});
    keys.back()["silent"] = std::move(silent);
  }
  Json out{{"server", context.server()}, {"begun", caption.begun}};
  out["for_ms"] = timeline.length.count();
  out["interval_ms"] = caption.interval.count();
  out["keys"] = std::move(keys);
  return out;
}

std::string title_of(const Context& context, const Given& given) {
  std::string names;
  for (const std::string& key : given.keys) names += (names.empty() ? "" : ", ") + printable(context.prefix() + key);
  if (given.pattern) names += (names.empty() ? "" : ", ") + printable(context.prefix() + *given.pattern);
  return fmt::format("{} at {}", names, context.server());
}

// Looks until the time is over or a signal comes. A server that does not answer at first is a Failure.
Timeline follow(const Context& context, const Given& given, const StopOnSignal& signals) {
  Client client = context.client();
  Follower follower(context, client, given.keys, given.pattern);
  TimelineBuilder builder;
  std::set<std::string> seen;
  bool troubled = false;
  const Deadline begun = LeaseClock::now(), end = deadline_after(begun, given.length);
  const auto time = [&](Deadline at) { return std::chrono::floor<Millis>(std::clamp(at, begun, end) - begun); };
  for (bool first = true; signals.signal() == 0; first = false) {
    const Deadline round = LeaseClock::now();
    try {
      for (const Look& look : follower.round(signals.token())) {
        if (signals.signal() != 0) break;
        seen.insert(look.key);
        builder.see(look.key, time(look.at), look.info.value_or(LeaseInfo{}));
      }
      if (troubled) context.remark(context.server() + " answers again");
      troubled = false;
    } catch (const Failure& failure) {
      if (signals.signal() != 0) break;
      if (first || !may_pass(failure)) throw;
      if (!troubled) context.remark(std::string(failure.what()) + "; trying again");
      troubled = true;
      for (const std::string& key : seen) builder.see(key, time(LeaseClock::now()), std::nullopt);
    }
    const Deadline now = LeaseClock::now();
    if (now >= end) break;
    const auto steps = (std::max(now, round + 1ms) - begun) / given.interval + 1;
    redlease::nap({std::min(end, begun + steps * LeaseClock::duration(given.interval)), signals.token()});
  }
  return builder.finish(time(LeaseClock::now()));
}

int trace(const Context& context, const Given& given) {
  if (given.keys.empty() && !given.pattern) {
    throw Failure(Exit::usage, "usage", "nothing to follow: name keys, or give --pattern");
  }
  if (given.interval < 10ms) throw Failure(Exit::usage, "usage", "--interval must be at least 10ms");
  if (given.length < given.interval) throw Failure(Exit::usage, "usage", "--for must not be shorter than --interval");
  if (given.length > 24h) throw Failure(Exit::usage, "usage", "--for must be at most 24h");
  const StopOnSignal signals;
  std::optional<OutFile> file;
  if (!given.output.empty() && given.output != "-") file.emplace(given.output);
  const Caption caption{title_of(context, given), utc_now(), given.interval};
  const Timeline timeline = follow(context, given, signals);
  const std::string svg = svg_of(timeline, caption);
  if (file) {
    file->finish(svg);
    context.remark(fmt::format("{} shows {} {} over {}", given.output, timeline.keys.size(),
                               timeline.keys.size() == 1 ? "key" : "keys", show(timeline.length)));
  }
  if (context.json()) {
    Context::print_json(json_of(timeline, caption, context));
  } else if (!file) {
    print(svg);
  }
  return signals.signal() == 0 ? number(Exit::ok) : 128 + signals.signal();
}

}  // namespace

void add_trace(CLI::App& app, Context& context) {
  auto given = std::make_shared<Given>();
  CLI::App* command = app.add_subcommand("trace", "Follow keys for a while and draw who held and who waited (SVG)");
  command->add_option("key", given->keys, "The names of the leases")->type_name("KEY");
  command->add_option("--pattern", given->pattern, "Also those that it finds: *, ?, [a-z]")->type_name("PATTERN");
  add_duration(*command, "--for", given->length, "For how long; default 30s, at most 24h");
  add_duration(*command, "--interval", given->interval, "How often to look; default 100ms");
  command->add_option("--output", given->output, "Where the drawing goes; default -, standard output")
      ->type_name("FILE");
  command->callback([&context, given] { context.action = [&context, given] { return trace(context, *given); }; });
}

}  // namespace redlease::cli
