// watch: the leases of a server as they come and go.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "cli/changes.hpp"
#include "cli/commands.hpp"
#include "cli/duration.hpp"
#include "cli/exit_code.hpp"
#include "cli/follower.hpp"
#include "cli/lease_table.hpp"
#include "cli/live_screen.hpp"
#include "cli/output.hpp"
#include "cli/stop_on_signal.hpp"
#include "cli/table.hpp"
#include "nap.hpp"

namespace redlease::cli {
namespace {

using namespace std::chrono_literals;

struct Given {
  std::string pattern{"*"};
  Millis interval{1'000}, limit{forever};
};

// Where what is seen is shown.
class View {
 public:
  View() = default;
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  virtual ~View() = default;
  virtual void changed(const std::string& key, const Change&) = 0;
  /// Empty: the server answers.
  virtual void trouble(const std::string&) = 0;
  virtual void round(const std::map<std::string, LeaseInfo>&) = 0;
  /// From time to time between rounds. False: nobody looks any more.
  virtual bool idle() = 0;
};

std::string sentence(const std::string& key, const Change& change) {
  const LeaseInfo& info = *change.holder;
  const auto who = [](const LeaseInfo& of) {
    if (of.holder.empty()) return std::string("another");
    return printable(of.holder) + (of.label.empty() ? "" : fmt::format(" ({})", printable(of.label)));
  };
  const auto fence = [&] {
    return info.held_for ? fmt::format(", fence {}", static_cast<std::uint64_t>(info.fence)) : "";
  };
  const std::string name = printable(key);
  switch (change.event) {
    case Event::held: return fmt::format("{} held by {}{}", name, who(info), fence());
    case Event::acquired: return fmt::format("{} acquired by {}{}", name, who(info), fence());
    case Event::released: return fmt::format("{} released by {}", name, who(info));
    case Event::expired: return fmt::format("{} lost by {}: it expired", name, who(info));
    case Event::handed_over:
      return fmt::format("{} handed over from {} to {}{}", name, who(*change.before), who(info), fence());
    case Event::waiting: break;
  }
  return fmt::format("{} waiters {}", name, info.waiters);
}

// One line, or one JSON object on a line, per change.
class Lines : public View {
 public:
  explicit Lines(const Context& context) : context_(context) {}

  void changed(const std::string& key, const Change& change) override {
    if (!context_.json()) return print(fmt::format("{} {}\n", utc_now(), sentence(key, change)));
    const LeaseInfo& info = *change.holder;
    Json line{{"at", utc_now()}, {"event", name_of(change.event)}, {"key", key}};
    line["holder"] = info.holder;
    line["label"] = info.label;
    line["fence"] = static_cast<std::uint64_t>(info.fence);
    line["waiters"] = info.waiters;
    if (change.before != nullptr) line["from"] = change.before->holder;
    print_line(line);
  }

  void trouble(const std::string& text) override {
    if (text.empty() == !troubled_) return;
    troubled_ = !text.empty();
    if (context_.json()) {
      Json line{{"at", utc_now()}, {"event", troubled_ ? "unavailable" : "back"}};
      if (troubled_) line["message"] = text;
      return print_line(line);
    }
    print(
        fmt::format("{} {}\n", utc_now(), troubled_ ? text + "; trying again" : context_.server() + " answers again"));
  }

  void round(const std::map<std::string, LeaseInfo>&) override {}

  bool idle() override {
    // A reader that has gone is noticed also when there is nothing to say.
    pollfd out{STDOUT_FILENO, 0, 0};
    return ::poll(&out, 1, 0) <= 0 || (out.revents & POLLERR) == 0;
  }

 private:
  static void print_line(const Json& line) { print(line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"); }

  const Context& context_;
  bool troubled_{false};
};

// A table on the terminal's other screen. What was last seen stays on the usual one.
class LiveTable : public View {
 public:
  LiveTable(const Context& context, std::string pattern)
      : screen_(STDOUT_FILENO),
        title_(fmt::format("{} at {}", printable(context.prefix() + pattern), context.server())) {
    live_.emplace();
  }
  ~LiveTable() override {
    live_.reset();
    std::string text;
    for (const std::string& line : lines(leases_.size() + 4)) text += line + "\n";
    try {
      print(text);
    } catch (const Failure&) {
      // The terminal has gone.
    }
  }

  void changed(const std::string&, const Change&) override {}
  void trouble(const std::string& text) override {
    trouble_ = printable(text);
    if (!text.empty()) draw();
  }
  void round(const std::map<std::string, LeaseInfo>& leases) override {
    leases_ = leases;
    std::erase_if(leases_, [](const auto& lease) { return !lease.second.held && lease.second.waiters == 0; });
    draw();
  }
  bool idle() override {
    if (screen_.columns() != columns_ || screen_.rows() != rows_) draw();
    return true;
  }

 private:
  void draw() {
    columns_ = screen_.columns();
    rows_ = screen_.rows();
    LiveScreen::draw(lines(static_cast<std::size_t>(rows_)));
  }

  std::vector<std::string> lines(std::size_t room) const {
    const auto width = static_cast<std::size_t>(screen_.columns());
    std::size_t held = 0, waiters = 0;
    for (const auto& [key, info] : leases_) {
      held += info.held ? 1 : 0;
      waiters += info.waiters;
    }
    std::vector<std::string> out{
        fitted(fmt::format("{} held, {} waiting  {}  {}", held, waiters, utc_now(), title_), width)};
    if (!trouble_.empty()) out.push_back(screen_.tinted(Tint::bad, fitted(trouble_ + "; trying again", width)));
    out.emplace_back();
    auto table = lease_lines(leases_, width, screen_);
    const std::size_t left = room > out.size() ? room - out.size() : 1;
    if (table.size() > left) {
      const std::size_t missing = table.size() - left + 1;
      table.resize(left);
      table.back() = fitted(fmt::format("… and {} more", missing), width);
    }
    out.insert(out.end(), table.begin(), table.end());
    if (out.size() > room) out.resize(room);
    return out;
  }

  const Screen screen_;
  const std::string title_;
  std::map<std::string, LeaseInfo> leases_;
  std::string trouble_;
  int columns_{0}, rows_{0};
  std::optional<LiveScreen> live_;
};

// What was last known of each key, and when.
class Known {
 public:
  explicit Known(Follower& follower) : follower_(follower) {}

  void see(std::vector<Look> looks, View& view) {
    for (Look& look : looks) {
      const auto found = at_.find(look.key);
      // What a pattern finds later was free at the first look.
      const LeaseInfo free;
      const LeaseInfo* before = found != at_.end() ? &leases_.at(look.key) : first_ ? nullptr : &free;
      LeaseInfo now = std::move(look.info).value_or(LeaseInfo{});
      const Millis elapsed = found != at_.end() ? std::chrono::floor<Millis>(look.at - found->second) : 0ms;
      for (const Change& change : changes(before, now, elapsed)) view.changed(look.key, change);
      if (!now.held && now.waiters == 0) follower_.forget(look.key);
      at_[look.key] = look.at;
      leases_[look.key] = std::move(now);
    }
    first_ = false;
    view.round(leases_);
    std::erase_if(leases_, [&](const auto& lease) {
      const bool over = !lease.second.held && lease.second.waiters == 0;
      if (over) at_.erase(lease.first);
      return over;
    });
  }

  bool first() const { return first_; }

 private:
  Follower& follower_;
  std::map<std::string, LeaseInfo> leases_;
  std::map<std::string, Deadline> at_;
  bool first_{true};
};

int watch(const Context& context, const Given& given) {
  if (given.interval < 10ms) throw Failure(Exit::usage, "usage", "--interval must be at least 10ms");
  const StopOnSignal signals;
  Client client = context.client();
  Follower follower(context, client, {}, given.pattern);
  Known known(follower);
  std::unique_ptr<View> view;
  const Deadline end = deadline_in(given.limit);
  for (;;) {
    const Deadline begun = LeaseClock::now();
    try {
      auto looks = follower.round(signals.token());
      if (signals.signal() != 0) return 128 + signals.signal();
      // Only now: what cannot work from the start is told on the usual screen.
      if (!view && Screen(STDOUT_FILENO).terminal && !context.json()) {
        view = std::make_unique<LiveTable>(context, given.pattern);
      } else if (!view) {
        view = std::make_unique<Lines>(context);
      }
      view->trouble({});
      known.see(std::move(looks), *view);
    } catch (const Failure& failure) {
      if (signals.signal() != 0) return 128 + signals.signal();
      if (failure.code == "no_reader") return number(Exit::ok);
      if (!view || !may_pass(failure)) throw;
      view->trouble(failure.what());
    }
    // Where looking takes long, half of the time is left to others.
    const Deadline now = LeaseClock::now();
    const Deadline next = std::min(end, std::max(deadline_after(begun, given.interval), now + (now - begun)));
    while (LeaseClock::now() < next && signals.signal() == 0) {
      redlease::nap({std::min(next, LeaseClock::now() + 100ms), signals.token()});
      if (!view->idle()) return number(Exit::ok);
    }
    if (signals.signal() != 0) return 128 + signals.signal();
    if (LeaseClock::now() >= end) return number(Exit::ok);
  }
}

}  // namespace

void add_watch(CLI::App& app, Context& context) {
  auto given = std::make_shared<Given>();
  CLI::App* command = app.add_subcommand("watch", "Show the leases that are held as they come and go");
  command->add_option("pattern", given->pattern, "Which names: *, ?, [a-z]; default all")->type_name("PATTERN");
  add_duration(*command, "--interval", given->interval, "How often to look; default 1s");
  add_duration(*command, "--for", given->limit, "For how long; default forever", "forever");
  command->callback([&context, given] { context.action = [&context, given] { return watch(context, *given); }; });
}

}  // namespace redlease::cli
