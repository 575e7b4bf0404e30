#include "drun/store/lease.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "store/client/lease_claim.hpp"
#include "store/client/lease_keeper.hpp"

namespace drun::store {
namespace {

constexpr std::chrono::milliseconds kShortest{10};

// A connection, and the keeper of a lease while it has one.
class Claimant {
 public:
  Claimant(Client store, std::string_view name, LeaseOptions options)
      : store_(std::move(store)), keys_(name), options_(std::move(options)) {
    options_.time_to_live = std::max(options_.time_to_live, kShortest);
  }

  Status take(Client::Timeout timeout) {
    if (holds()) return Done{};
    keeper_.reset();
    const auto taken =
        take_lease(store_, keys_, options_.time_to_live, options_.holder, deadline(timeout));
    if (!taken) return taken.error();
    term_ = taken->term;
    keeper_.emplace(store_, keys_, *taken, options_.time_to_live, options_.on_lost);
    return Done{};
  }

  [[nodiscard]] bool holds() const { return keeper_ && keeper_->held(); }
  [[nodiscard]] std::int64_t term() const { return term_; }

  Result<std::string> holder(Client::Timeout timeout) {
    if (holds()) return options_.holder;
    keeper_.reset();  // the connection is its until then
    return lease_holder(store_, keys_, deadline(timeout));
  }

  Status release() { return keeper_ ? keeper_->release() : Status(Done{}); }

 private:
  [[nodiscard]] Client::Deadline deadline(Client::Timeout timeout) const {
    return Client::Clock::now() + timeout.value_or(store_.timeout());
  }

  Client store_;
  LeaseKeys keys_;
  LeaseOptions options_;
  std::int64_t term_ = 0;
  std::optional<LeaseKeeper> keeper_;
};

LeaseOptions named(LeaseOptions options, std::string candidate) {
  options.holder = std::move(candidate);
  return options;
}

}  // namespace

class Lease::Impl : public Claimant {
 public:
  using Claimant::Claimant;
};

Lease::Lease(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Lease::Lease(Lease&&) noexcept = default;
Lease& Lease::operator=(Lease&&) noexcept = default;
Lease::~Lease() = default;

Result<Lease> Lease::acquire(Client store, std::string_view name, LeaseOptions options,
                             Client::Timeout timeout) {
  auto impl = std::make_unique<Impl>(std::move(store), name, std::move(options));
  const Status taken = impl->take(timeout);
  if (!taken) return taken.error();
  return Lease(std::move(impl));
}

bool Lease::held() const {
  return impl_->holds();
}

std::int64_t Lease::term() const {
  return impl_->term();
}

Status Lease::release() {
  return impl_->release();
}

class Election::Impl : public Claimant {
 public:
  using Claimant::Claimant;
};

Election::Election(Client store, std::string_view name, std::string candidate, LeaseOptions options)
    : impl_(std::make_unique<Impl>(std::move(store), name,
                                   named(std::move(options), std::move(candidate)))) {}
Election::Election(Election&&) noexcept = default;
Election& Election::operator=(Election&&) noexcept = default;
Election::~Election() = default;

Status Election::campaign(Client::Timeout timeout) {
  return impl_->take(timeout);
}

bool Election::leads() const {
  return impl_->holds();
}

std::int64_t Election::term() const {
  return impl_->term();
}

Result<std::string> Election::leader(Client::Timeout timeout) {
  return impl_->holder(timeout);
}

void Election::resign() {
  (void)impl_->release();
}

}  // namespace drun::store
