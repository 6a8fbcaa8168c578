#include "redlease/client.hpp"

#include <stdexcept>
#include <utility>

#include "core.hpp"
#include "store/open_store.hpp"
#include "wait.hpp"

namespace redlease {
inline namespace v0 {

Client::Client(std::string_view url, ClientOptions options) : Client(open_store(url, checked(options)), options) {}

Client::Client(std::shared_ptr<LeaseStore> store, ClientOptions options) {
  checked(options);
  if (!store) throw std::invalid_argument("redlease: a Client needs a LeaseStore, and this pointer is null");
  state_ = std::make_shared<State>(State{std::make_shared<Core>(std::move(store), options)});
}

Client::~Client() {
  try {
    state_->core->keeper.get().close();  // made if need be: what outlives the Client must find it closed
  } catch (const std::bad_alloc&) {
    // Then nothing was kept, and there is no memory to begin with it.
  }
}

AcquireResult Client::try_acquire(const LeaseKey& key, const LeaseOptions& options) {
  const Wish wish(state_->core, key, options);
  return LeaseMaker::acquire(wish, {deadline_in(wish.op_timeout), {}});
}

AcquireResult Client::acquire(const LeaseKey& key, const LeaseOptions& options, std::stop_token stop) {
  return Wait(Wish(state_->core, key, options), options.wait, std::move(stop)).run();
}

Lease Client::adopt(const LeaseKey& key, const OwnerToken& token, const LeaseOptions& options) {
  return LeaseMaker::adopted(Tenure(state_->core, key, options), token);
}

Result<LeaseInfo> Client::inspect(const LeaseKey& key) {
  return state_->core->store->inspect(full_name(*state_->core, key.str()), short_call());
}

Result<bool> Client::break_lease(const LeaseKey& key) {
  return state_->core->store->break_lease(full_name(*state_->core, key.str()), short_call());
}

Result<Unit> Client::ping() { return state_->core->store->ping(short_call()); }

}  // namespace v0
}  // namespace redlease
