#include "launcher/backend/backend_discovery.hpp"

#include <algorithm>
#include <utility>

#include "base/addresses.hpp"

namespace drun::launcher {

BackendDiscovery::BackendDiscovery(asio::io_context& io, StartLookUp start_look_up)
    : look_up_(io, std::move(start_look_up)) {}

void BackendDiscovery::ask(const Endpoint& endpoint, Answer answer) {
  const auto numeric = numeric_addresses(endpoint.host);
  if (!numeric.empty()) return answer(is_own_address(numeric.front()));
  look_up_.ask(endpoint, [answer = std::move(answer)](const Result<store::Addresses>& found) {
    if (!found) return answer(found.error());
    answer(std::any_of(found->begin(), found->end(), [](const SocketAddress& each) {
      return is_own_address(to_endpoint(each).host);
    }));
  });
}

}  // namespace drun::launcher
