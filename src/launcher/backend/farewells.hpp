// What is said for this agent to the stores if it is killed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drun/store/control_client.hpp"
#include "launcher/backend/address_book.hpp"
#include "launcher/backend/remote_backend.hpp"
#include "launcher/backend/store_standing.hpp"

namespace drun::launcher {

// The first ends the session at the store. If it does not get there, because the store is gone as
// well, the others tell the store's successors.
struct Farewells {
  std::optional<store::ControlFarewell> first;
  std::vector<store::ControlFarewell> others;
  std::string key{};  // of these stores; empty: the job has no token
};

// A store that this agent hosts dies with it, so that one is not told: whatever has the port by
// then is another program. `sign`: a key that tells the others of the death, see RemoteBackend.
[[nodiscard]] Farewells farewells(const RemoteBackend& link, const StoreStanding& standing,
                                  const AddressBook& addresses, std::string_view sign);
// Of these the others: to each address of each successor.
[[nodiscard]] Farewells farewells_to_others(const RemoteBackend& link,
                                            const StoreStanding& standing,
                                            const AddressBook& addresses);

}  // namespace drun::launcher
