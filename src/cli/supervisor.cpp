#include "cli/supervisor.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>

#include "cli/duration.hpp"
#include "cli/inherited.hpp"
#include "cli/output.hpp"

namespace redlease::cli {
namespace {

using namespace std::chrono_literals;

// A process that SIGKILL has not ended by then is in the hands of the kernel.
constexpr Millis patience = 1'000ms;
// A pipe that has room takes so much at once.
constexpr std::size_t longest_note = 4'000;

Millis until(Deadline time) { return std::max(0ms, std::chrono::ceil<Millis>(time - LeaseClock::now())); }

bool is_pending(int signal) {
  sigset_t set;
  return ::sigpending(&set) == 0 && sigismember(&set, signal) == 1;
}

}  // namespace

void LastRenewal::renewed(const Event&) noexcept {
  const MutexLock lock(mutex_);
  trouble_.clear();
}

void LastRenewal::renew_failed(const Event& event) noexcept {
  try {
    const MutexLock lock(mutex_);
    // A call that was cut short for another reason than the server says nothing about it.
    if (event.error != nullptr && event.error->code != Errc::cancelled) trouble_ = event.error->detail;
  } catch (const std::bad_alloc&) {
    return;  // then the reason is not told
  }
}

std::string LastRenewal::trouble() const {
  const MutexLock lock(mutex_);
  return trouble_;
}

Supervisor::Supervisor(const Context& context, Events& events, Terminal& terminal, bool in_foreground, Command& command,
                       const LeaseGuard& guard, const LastRenewal& renewals, const Terms& terms)
    : context_(context),
      events_(events),
      terminal_(terminal),
      command_(command),
      guard_(guard),
      renewals_(renewals),
      terms_(terms),
      key_(printable(guard.key().str())),
      in_foreground_(in_foreground) {}

int Supervisor::run() {
  while (!command_.over()) {
    events_.wait(next_step());
    watch_the_lease();  // before all else: if we were stopped meanwhile, the command may have no lease any more
    while (const int signal = events_.next_signal()) take(signal);
    command_.reap();
    if (const int stop = command_.stopped_by()) follow(stop);
    if (command_.status() && !leader_ended_) leader_ended();
  }
  return *command_.status();
}

// Renewals move it.
Deadline Supervisor::end() const { return std::min(guard_.deadline(), terms_.cap); }

Deadline Supervisor::next_step() const {
  if (killed_at_) return deadline_after(*killed_at_, patience);
  return std::min(rest_until_, cut_short_ ? end() : deadline_after(end(), -terms_.stop));
}

void Supervisor::watch_the_lease() {
  command_.reap();
  if (command_.over()) return;
  const Deadline now = LeaseClock::now();
  const bool lost = guard_.loss() || now >= end();
  if (killed_at_) {
    if (now < deadline_after(*killed_at_, patience)) return;
    note(
        fmt::format("process group {} was sent SIGKILL and has not ended: it may be in an uninterruptible call of the "
                    "kernel, or have changed its user. Still waiting for it",
                    command_.group()));
    killed_at_ = Deadline::max();
  } else if (lost) {
    kill();
    cut_short_ = true;
    note(fmt::format("{} {}, so the command was killed (SIGKILL): {}", key_,
                     !guard_.loss() && now >= terms_.cap ? "is to be held no longer" : "is lost", why_lost()));
  } else if (now >= rest_until_) {
    kill();
  } else if (!cut_short_ && now >= deadline_after(end(), -terms_.stop)) {
    terminate();
    cut_short_ = true;
    note(fmt::format("{} will be lost in {}, so the command was told to stop (SIGTERM) and will be killed then: {}",
                     key_, show(until(end())), why_lost()));
  }
}

void Supervisor::kill() {
  command_.signal_group(SIGKILL);
  killed_at_ = LeaseClock::now();
}

void Supervisor::terminate() {
  command_.signal_group(SIGTERM);
  command_.signal_group(SIGCONT);  // one that is stopped could not obey
}

// A signal that came to this process. Those that end or stop a job are for all of it, as when the terminal sends them;
// the others mean the command itself: its helpers may not expect them, and would die.
void Supervisor::take(int signal) {
  switch (signal) {
    case SIGCHLD:  // run() looks after each round
    case SIGTTIN:  // of our own access to the terminal, which we do not need
    case SIGTTOU: return;
    case SIGCONT: return resume();
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
    case SIGQUIT:
      if (ignored(signal)) return;
      if (!leader_ended_) return command_.signal_group(signal);
      // What the command left behind may have been started to ignore Ctrl-C (`job &` in a script).
      terminate();
      rest_until_ = std::min(rest_until_, deadline_in(terms_.grace));
      return;
    case SIGTSTP:
      command_.signal_group(signal);
      if (leader_ended_) follow(signal);  // nobody tells when the others have stopped
      return;
    case SIGWINCH: return command_.signal_group(signal);
    default: return command_.signal_leader(signal);
  }
}

// The command was stopped. By the terminal: then we stop as well, with all of our own group, so that the shell sees a
// stopped job. By whoever sent SIGSTOP to it alone: then it stays stopped, and we go on renewing.
void Supervisor::follow(int stop) {
  if (!terminal_.exists() || stop == SIGSTOP || killed_at_) return;
  if ((stop == SIGTTIN || stop == SIGTTOU) && terminal_.ours()) {  // it needs the terminal, and we have it to give
    terminal_.give(command_.group());
    return command_.signal_group(SIGCONT);
  }
  ::kill(0, stop);
  Events::let_through(stop);  // goes on here when somebody sends SIGCONT, which then also waits in events_
  // Or at once, where no shell could continue us (an orphaned group): then the command cannot be stopped either.
  if (!is_pending(SIGCONT)) resume();
}

void Supervisor::resume() {
  watch_the_lease();  // it may have ended while all stood still
  if (in_foreground_ && !leader_ended_ && terminal_.ours()) {
    terminal_.give(command_.group());
  } else {
    terminal_.look_again(command_.group());
  }
  command_.signal_group(SIGCONT);
}

void Supervisor::leader_ended() {
  leader_ended_ = true;
  terminal_.take_back();
  if (command_.over() || killed_at_ || context_.quiet()) return;
  note(fmt::format(
      "the command has ended, but others of its process group ({}) go on: {} is kept until they end, or are "
      "ended by a SIGTERM to this process",
      command_.group(), key_));
}

std::string Supervisor::why_lost() const {
  if (guard_.loss() == LossCause::gone) return "the key is gone (broken, given back, or forgotten by the server)";
  if (guard_.loss() == LossCause::taken) return "another holds it now";
  if (LeaseClock::now() >= deadline_after(terms_.cap, -terms_.stop)) return "that is its --max-hold";
  const std::string trouble = renewals_.trouble();
  return trouble.empty() ? "this process did not get round to renewing it" : "no renewal succeeds: " + trouble;
}

// Only where it takes no time: a reader of stderr that stands still must not keep us from killing in time.
void Supervisor::note(std::string_view text) const {
  pollfd err{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&err, 1, 0) != 1 || (err.revents & POLLOUT) == 0) return;
  print_error(text.substr(0, longest_note));
}

}  // namespace redlease::cli
