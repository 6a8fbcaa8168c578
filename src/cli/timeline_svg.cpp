#include "cli/timeline_svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "cli/duration.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"

namespace redlease::cli {
namespace {

constexpr double left = 300, chart = 840, right = 40, margin = 20;
constexpr double head = 92, key_height = 30, lane_height = 24, bar_height = 16, foot = 74;
constexpr double fence_letter = 6.4;  // of the monospaced font in the bars
constexpr std::size_t name_columns = 40, title_columns = 120;

// Dark enough for white letters on them, and told apart by those who see no red or green.
constexpr std::array<std::string_view, 8> colours{"#0b6e99", "#a84f12", "#4a7429", "#7b3fa0",
                                                  "#a6204f", "#00756a", "#7a6100", "#475a8f"};

constexpr std::string_view silent_fill = R"-(fill="url(#silent)")-";

std::string held_fill(std::size_t colour) { return fmt::format(R"(rx="2" fill="{}")", colours[colour]); }

std::string waited_fill(std::size_t colour) {
  return fmt::format(R"-(rx="2" fill="url(#w{})" stroke="{}")-", colour, colours[colour]);
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  // Two characters of Unicode that XML has no room for.
  for (const std::string_view bad : {"\xef\xbf\xbe", "\xef\xbf\xbf"}) {
    for (auto at = out.find(bad); at != out.npos; at = out.find(bad, at)) out.replace(at, bad.size(), "?");
  }
  return out;
}

std::string shortened(std::string_view text, std::size_t columns) { return escaped(fitted(printable(text), columns)); }

// "1.5 s": of a time axis, whose steps are round.
std::string tick_label(Millis at) {
  const auto ms = at.count();
  if (ms == 0) return "0";
  if (ms < 1'000) return fmt::format("{} ms", ms);
  if (ms < 60'000) return fmt::format("{:g} s", static_cast<double>(ms) / 1'000);
  return show(at);
}

Millis tick_step(Millis length) {
  constexpr std::array<int, 24> steps{1,       2,       5,       10,      20,        50,        100,       200,
                                      500,     1'000,   2'000,   5'000,   10'000,    15'000,    30'000,    60'000,
                                      120'000, 300'000, 600'000, 900'000, 1'800'000, 3'600'000, 7'200'000, 21'600'000};
  for (const int step : steps) {
    if (length.count() / step <= 10) return Millis(step);
  }
  return Millis((length.count() / 86'400'000 / 10 + 1) * 86'400'000);
}

class Drawing {
 public:
  Drawing(const Timeline& timeline, const Caption& caption)
      : timeline_(timeline), caption_(caption), length_(std::max(timeline.length, Millis(1))) {}

  std::string svg() {
    const double top = head;
    double y = top;
    for (const KeyTimeline& key : timeline_.keys) y = draw_key(key, y);
    if (timeline_.keys.empty()) {
      text(left + 8, y + 24, "Nothing was held or waited for.", "note");
      y += 40;
    }
    const double bottom = y + 6;
    const double width = left + chart + right, height = bottom + foot;
    std::string out = fmt::format(
        R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0:g} {1:g}" width="{0:g}" height="{1:g}" role="img">)"
        "\n<title>{2}</title>\n{3}",
        width, height, escaped(caption_.title), style());
    out += definitions();
    out += fmt::format("<rect width=\"{:g}\" height=\"{:g}\" fill=\"#ffffff\"/>\n", width, height);
    std::swap(body_, out);
    text(margin, 30, shortened(caption_.title, title_columns), "title");
    text(margin, 50, escaped(fmt::format("from {}, for {}", caption_.begun, show(timeline_.length))), "note");
    axis(top, bottom);
    body_ += out;
    legend(bottom);
    return body_ + "</svg>\n";
  }

 private:
  double x(Millis at) const {
    const double part = static_cast<double>(at.count()) / static_cast<double>(length_.count());
    return left + std::clamp(part, 0.0, 1.0) * chart;
  }

  // `what` is escaped.
  void text(double at_x, double at_y, std::string_view what, std::string_view kind) {
    fmt::format_to(std::back_inserter(body_), "<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", at_x, at_y,
                   kind, what);
  }
  void box(double x1, double x2, double y, double height, std::string_view fill, std::string_view title = {}) {
    fmt::format_to(std::back_inserter(body_), R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" {})", x1, y,
                   x2 - x1, height, fill);
    body_ += title.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", title);
  }
  void line(double x1, double y1, double x2, double y2, std::string_view kind) {
    fmt::format_to(std::back_inserter(body_),
                   "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2, y2,
                   kind);
  }
  void diamond(double at_x, double at_y, std::string_view title) {
    fmt::format_to(std::back_inserter(body_),
                   "<path d=\"M{:.1f} {:.1f}l5 5l-5 5l-5 -5z\" class=\"unseen\"><title>{}</title></path>\n", at_x,
                   at_y - 5, title);
  }

  static std::string style() {
    return "<style>text{font-family:system-ui,'DejaVu Sans',sans-serif;font-size:12px;fill:#1f2328}"
           ".title{font-size:16px;font-weight:600}.key{font-size:13px;font-weight:600}.note,.tick{fill:#57606a}"
           ".tick{font-size:11px;text-anchor:middle}.who{text-anchor:end}"
           ".fence{font-family:ui-monospace,'DejaVu Sans Mono',monospace;font-size:10.5px;fill:#ffffff}"
           ".grid{stroke:#e4e7eb}.edge{stroke:#8c959f}.lost{stroke:#d1001f;stroke-width:3}"
           ".unseen{fill:#ffffff;stroke:#1f2328;stroke-width:1.5}</style>\n";
  }
  static std::string definitions() {
    std::string out = "<defs>\n";
    for (std::size_t i = 0; i < colours.size(); ++i) {
      out += fmt::format(
          "<pattern id=\"w{0}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
          "patternTransform=\"rotate(45)\">"
          "<rect width=\"6\" height=\"6\" fill=\"#ffffff\"/><rect width=\"6\" height=\"6\" fill=\"{1}\" "
          "fill-opacity=\"0.15\"/><rect width=\"1.6\" height=\"6\" fill=\"{1}\"/></pattern>\n",
          i, colours[i]);
    }
    return out +
           "<pattern id=\"silent\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\" "
           "patternTransform=\"rotate(-45)\"><rect width=\"8\" height=\"8\" fill=\"#f0f1f3\"/>"
           "<rect width=\"3\" height=\"8\" fill=\"#d0d4d9\"/></pattern>\n</defs>\n";
  }

  // One process has one colour under every key.
  std::size_t colour_of(const std::string& who) {
    auto found = std::ranges::find(participants_, who);
    if (found == participants_.end()) found = participants_.insert(found, who);
    return static_cast<std::size_t>(found - participants_.begin()) % colours.size();
  }

  double draw_key(const KeyTimeline& key, double y) {
    const double below = y + key_height + lane_height * static_cast<double>(std::max<std::size_t>(key.lanes.size(), 1));
    line(margin, y, left + chart, y, "edge");
    for (const auto& [from, to] : key.silent) {
      box(x(from), std::max(x(to), x(from) + 2), y + 1, below - y - 1, silent_fill,
          escaped(fmt::format("the server did not answer: {} to {}", show(from), show(to))));
    }
    text(margin, y + 20, shortened(key.key, title_columns), "key");
    for (const Millis at : key.unseen) {
      diamond(x(at), y + 16, "at least one grant had come and gone unseen by " + escaped(show(at)));
    }
    y += key_height;
    if (key.lanes.empty()) text(left - 8, y + 16, "free all the time", "who note");
    for (const Lane& lane : key.lanes) {
      text(left - 8, y + 16, shortened(lane.who, name_columns), "who");
      for (const Span& span : lane.spans) draw_span(lane.who, span, y + (lane_height - bar_height) / 2);
      y += lane_height;
    }
    return below;
  }

  void draw_span(const std::string& who, const Span& span, double y) {
    const std::size_t colour = colour_of(who);
    const double x1 = x(span.from), x2 = std::max(x(span.to), x1 + 2);
    std::string told = fmt::format("{} {}", printable(who), span.held ? "held it" : "waited");
    if (span.fence != FencingToken{}) told += fmt::format(", fence {}", static_cast<std::uint64_t>(span.fence));
    told += fmt::format(": {} to {}", span.began_before ? "from before the trace" : show(span.from),
                        span.goes_on ? "beyond it" : show(span.to));
    if (span.expired) told += ", when it expired";
    box(x1, x2, y, bar_height, span.held ? held_fill(colour) : waited_fill(colour), escaped(told));
    if (span.held && span.fence != FencingToken{}) fence(span.fence, x1, x2, y);
    if (span.expired) line(x2 - 1.5, y - 3, x2 - 1.5, y + bar_height + 3, "lost");
  }

  // All of it, its end, or nothing: as there is room.
  void fence(FencingToken token, double x1, double x2, double y) {
    std::string digits = fmt::format("{}", static_cast<std::uint64_t>(token));
    const auto room = static_cast<std::size_t>(std::max(0.0, (x2 - x1 - 8) / fence_letter));
    if (room < digits.size()) {
      if (room < 7) return;
      digits = "…" + digits.substr(digits.size() - 6);
    }
    text(x1 + 5, y + 12, digits, "fence");
  }

  void axis(double top, double bottom) {
    const Millis step = tick_step(length_);
    for (Millis at{0}; at <= length_; at += step) {
      line(x(at), top - 6, x(at), bottom, "grid");
      text(x(at), top - 12, tick_label(at), "tick");
    }
    line(left, top, left, bottom, "edge");
  }

  void legend(double bottom) {
    const double y = bottom + 12;
    line(margin, bottom, left + chart, bottom, "edge");
    double at = margin;
    const auto entry = [&](double width, std::string_view what) {
      text(at + width + 6, y + 12, what, "note");
      at += width + 6 + static_cast<double>(columns_of(what)) * 7 + 24;
    };
    box(at, at + 28, y, bar_height, held_fill(colours.size() - 1));
    entry(28, "held (with its fence)");
    box(at, at + 28, y, bar_height, waited_fill(colours.size() - 1));
    entry(28, "waited");
    box(at, at + 28, y, bar_height, held_fill(colours.size() - 1));
    line(at + 26.5, y - 3, at + 26.5, y + bar_height + 3, "lost");
    entry(28, "expired");
    diamond(at + 5, y + 8, "a grant came and went unseen");
    entry(10, "a grant came and went unseen");
    box(at, at + 28, y, bar_height, silent_fill);
    entry(28, "no answer from the server");
    text(
        margin, y + 42,
        escaped(fmt::format("Seen by looking every {}: a grant or a wait shorter than that can be missed, and ends are "
                            "known to within it.",
                            show(caption_.interval))),
        "note");
  }

  const Timeline& timeline_;
  const Caption& caption_;
  const Millis length_;
  std::string body_;
  std::vector<std::string> participants_;
};

}  // namespace

std::string svg_of(const Timeline& timeline, const Caption& caption) { return Drawing(timeline, caption).svg(); }

}  // namespace redlease::cli
