#include "launcher/backend/farewells.hpp"

#include <string>

namespace drun::launcher {

Farewells farewells(const RemoteBackend& link, const StoreStanding& standing,
                    const AddressBook& addresses) {
  return {standing.hosts() ? std::nullopt : link.farewell(),
          proofs_for_others(link, standing, addresses), standing.key()};
}

std::vector<store::ControlFarewell> proofs_for_others(const RemoteBackend& link,
                                                      const StoreStanding& standing,
                                                      const AddressBook& addresses) {
  std::vector<store::ControlFarewell> result;
  const std::string proof = link.proof_of_death();
  if (proof.empty()) return result;
  for (const auto& successor : standing.other_successors())
    for (const auto& address : addresses.addresses(successor))
      result.push_back({std::string(address.bytes()), proof});
  return result;
}

}  // namespace drun::launcher
