// What must hold in every world.
#include <algorithm>
#include <string>

#include "trace_line.hpp"
#include "world.hpp"

namespace redlease::testing_support {

using namespace std::chrono_literals;

// As the holder is told, whether or not the client's own events have been delayed.
bool World::held(const Client& client) const noexcept {
  return client.plan && !client.idle && client.limit == Deadline::max() && !client.plan->loss() &&
         client.clock.read(now_) < client.plan->deadline();
}

void World::check() {
  int holders = 0;
  for (Client& client : clients_) {
    const bool holds = held(client);
    holders += holds ? 1 : 0;
    if (holds && client.seen_lost) broken("a lost lease is held again");
    if (!holds) client.seen_lost = true;
  }
  if (holders > 1 && !forgot_) broken("two hold at once");
}

void World::check_grant(std::uint64_t fence) {
  if (fence <= last_fence_) broken("a fence does not grow");
  last_fence_ = fence;
  if (std::ranges::find(withdrawn_, value_) != withdrawn_.end()) broken("what was said to be withdrawn is granted");
  if (forgot_) return;
  for (const Client& client : clients_) {
    if (held(client)) broken("the server grants to another while client " + std::to_string(client.id) + " holds");
    const bool told = client.idle || client.limit != Deadline::max() || client.plan->loss();
    if (!told && now_ >= client.stalled_until) broken("the loss was not signalled before the next grant");
    tally_.lost_while_stalled += told ? 0 : 1;
  }
}

void World::check_renewal(const Client& client, Deadline now) {
  const RenewalPlan& plan = *client.plan;
  if (client.idle || plan.loss() || plan.next().step == RenewalPlan::Step::nothing) broken("renewed though it is over");
  if (now >= plan.deadline()) broken("renewed after the deadline");
  if (plan.deadline() == plan.cap()) broken("renewed though the deadline cannot be moved any more");
}

void World::check_ask(const Client& client, Deadline now) {
  if (client.asked) broken("asked twice to stop");
  const bool late = client.begun > client.plan->deadline() - terms_.stop_before;  // the grant was answered so late
  if (weather_ < Weather::stalls && !late && now > client.plan->deadline() - terms_.stop_before + 10ns) {
    broken("asked too late to stop");
  }
}

void World::check_loss(const Client& client, LossCause cause, Deadline now) {
  const RenewalPlan& plan = *client.plan;
  if (plan.loss() != cause) broken("lost for another cause than said");
  if (cause == LossCause::max_hold && now < plan.cap()) broken("max_hold came too early");
  if (cause == LossCause::deadline || cause == LossCause::max_hold) {
    if (now < plan.deadline()) broken("lost before its deadline");
    if (terms_.stop_before > 0ms && !client.asked) broken("lost without being asked to stop");
  } else if (!forgot_) {
    broken("the server had it no longer before the deadline");
  }
  if (weather_ != Weather::calm) return;
  if (cause != LossCause::max_hold) broken("lost though the server always answered in time");
  const double thirds = 3.3 * static_cast<double>((now - client.begun + terms_.op_timeout).count()) /
                        static_cast<double>(Span(terms_.ttl).count());
  if (client.renewals > thirds + 1) broken("renewed too often");
}

void World::check_withdrawn(std::uint64_t token) {
  if (token == value_ && server_clock_.read(now_) < expiry_) broken("said to be withdrawn, and it stands");
  withdrawn_.push_back(token);
}

void World::broken(std::string what) {
  note(nullptr, what.c_str());
  if (broken_.empty()) broken_ = std::move(what);
}

void World::note(const Client* client, const char* what, std::uint64_t number) {
  if (trace_ == nullptr) return;
  const std::string who = client == nullptr ? "" : "client " + std::to_string(client->id) + " ";
  trace_->push_back(trace_line(now_, who, what, number));
}

}  // namespace redlease::testing_support
