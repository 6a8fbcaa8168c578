#include "cli/watch_view.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "cli/exit_code.hpp"
#include "cli/follower.hpp"
#include "cli/lease_table.hpp"
#include "cli/live_screen.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"

namespace redlease::cli {
namespace {

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

}  // namespace

std::unique_ptr<View> line_view(const Context& context) { return std::make_unique<Lines>(context); }

std::unique_ptr<View> table_view(const Context& context, const std::string& pattern) {
  return std::make_unique<LiveTable>(context, pattern);
}

}  // namespace redlease::cli
