// A lease: of all who ask for it, one process holds it at a time, for as long as it is alive. And
// an election, which is a lease with a name for its holder.
//
//   auto lease = drun::store::Lease::acquire(Client::connect().value(), "checkpoint");
//   if (!lease) return fail(lease.error().what());
//   while (lease->held() && save_next_part()) {}
//   // given back here
//
// What holds, against drun's store and torch's alike: they are made of compare_set, add and wait. A
// holder counts up a key from a thread of its own, three times in each time to live. Who waits
// takes the lease when the holder has given it back, or when by the waiting one's own clock the
// count has stood still for a whole time to live. A holder whose count was not answered stops to be
// one after nine tenths of that, by its own clock. So two hold it at once only in these cases:
//
// A machine's clock runs slower than another's by more than a tenth, or stands still, as that of a
// virtual machine that is stopped and goes on.
//
// Somebody acts on a held() of earlier: a process can be stopped between the question and the act.
// Where that must not be, give term() to what the lease protects, and let it refuse lower ones.
//
// The store has lost its keys. drun empties the workers' store when it starts the workers again,
// and all leases end there with their holders. But a store that crashes and comes back empty, or
// with a snapshot of earlier, may give a lease away while its holder has not noticed yet, for up to
// a third of the time to live; and the terms begin anew.
//
// The servers of torch before 2.2 cannot cancel a wait: there those who wait look five times in a
// second. No server knows of leases: any client can delete their keys, below "lease/NAME/".
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "drun/base/result.hpp"
#include "drun/store/client.hpp"

namespace drun::store {

struct LeaseOptions {
  // How long after its holder's last word others may take it. Counts are sent three times in it:
  // not below what the network and a loaded machine need. At least 10 ms.
  std::chrono::milliseconds time_to_live{6'000};
  // What the others are told of the holder, in messages and by Election::leader().
  std::string holder{};
  // Called at most once, from the lease's own thread, when the lease is lost without having been
  // given back. It must not destroy or release the lease.
  std::function<void(const Error&)> on_lost{};
};

// Move-only. All but held(), term() and the store's part from one thread at a time.
class Lease {
 public:
  // Waits until the lease is free, and takes it. `store` is its own from now on: a connection that
  // nobody else uses. A Timeout says who holds it; with a time limit of zero it asks once.
  [[nodiscard]] static Result<Lease> acquire(Client store, std::string_view name,
                                             LeaseOptions options = {},
                                             Client::Timeout timeout = {});
  Lease(Lease&&) noexcept;
  Lease& operator=(Lease&&) noexcept;
  ~Lease();  // release()

  // Whether it is held now; once it is not, it never is again. Any thread.
  [[nodiscard]] bool held() const;
  // The first holder has 1, each one after it a higher number.
  [[nodiscard]] std::int64_t term() const;
  // Gives it back: who waits for it has it at once. An error: it was lost before, and why.
  Status release();

 private:
  class Impl;
  explicit Lease(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Who leads, among those who stand for it under one name. One thread at a time, but for leads().
class Election {
 public:
  // `store` is its own, as with Lease. `candidate` is what the others will read. Nothing is sent
  // before a call. Options as with a lease; `holder` is not used.
  Election(Client store, std::string_view name, std::string candidate, LeaseOptions options = {});
  Election(Election&&) noexcept;
  Election& operator=(Election&&) noexcept;
  ~Election();  // resign()

  // Stands until this one leads; at once if it does.
  [[nodiscard]] Status campaign(Client::Timeout timeout = {});
  // Any thread, while no campaign() and no resign() is under way.
  [[nodiscard]] bool leads() const;
  // Of this one's last success; 0: none.
  [[nodiscard]] std::int64_t term() const;
  // The candidate who was elected last and has not resigned; waits for one. It may have died within
  // its time to live.
  [[nodiscard]] Result<std::string> leader(Client::Timeout timeout = {});
  // Lets another lead; nothing if this one does not. It may stand again.
  void resign();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drun::store
