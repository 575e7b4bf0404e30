#include "launcher/backend/farewells.hpp"

#include <string>

namespace drun::launcher {

Farewells farewells(const RemoteBackend& link, const StoreStanding& standing,
                    const AddressBook& addresses, std::string_view sign) {
  Farewells result = farewells_to_others(link, standing, addresses);
  if (!standing.hosts()) result.first = link.farewell(sign);
  return result;
}

Farewells farewells_to_others(const RemoteBackend& link, const StoreStanding& standing,
                              const AddressBook& addresses) {
  Farewells result;
  result.key = standing.key();
  const std::string proof = link.proof_of_death();
  if (proof.empty()) return result;
  for (const auto& successor : standing.other_successors())
    for (const auto& address : addresses.addresses(successor))
      result.others.push_back({std::string(address.bytes()), proof});
  return result;
}

}  // namespace drun::launcher
