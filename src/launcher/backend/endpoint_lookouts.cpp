#include "launcher/backend/endpoint_lookouts.hpp"

#include <cstddef>

#include "store/client/resolve.hpp"

namespace drun::launcher {

void EndpointLookouts::keep(LookoutTask task, const store::StoreNews& news) {
  if (!tells(task)) quick_.reset();
  if (task == LookoutTask::None) return lookout_.reset();
  if (lookout_ && tells(task_) != tells(task)) end();
  task_ = task;
  look_out(lookout_, known_endpoints(), standing_.inquiry(task), news);
  if (tells(task)) look_out(quick_, known_addresses(), standing_.quick_inquiry(), news);
}

void EndpointLookouts::end() {
  lookout_.reset();
  quick_.reset();
}

void EndpointLookouts::look_out(std::unique_ptr<store::Lookout>& lookout,
                                const std::vector<Endpoint>& endpoints,
                                const store::InquiryFsm::Options& options,
                                const store::StoreNews& news) {
  if (!lookout)
    lookout = std::make_unique<store::Lookout>(
        io_, endpoints, options,
        [this, endpoints](std::size_t endpoint, const store::Whereabouts& answer) {
          on_answer_(endpoints[endpoint], answer);
        });
  lookout->tell(news);
}

std::vector<Endpoint> EndpointLookouts::known_endpoints() const {
  return options_.endpoints.empty() ? std::vector{options_.endpoint} : options_.endpoints;
}

// Those that can be asked without a name look-up.
std::vector<Endpoint> EndpointLookouts::known_addresses() const {
  std::vector<Endpoint> result;
  for (const auto& each : options_.endpoints)
    if (!store::literal_addresses(each).empty()) result.push_back(each);
  if (!options_.endpoints.empty()) return result;
  if (!store::literal_addresses(options_.endpoint).empty()) return {options_.endpoint};
  return address_ ? std::vector{*address_} : std::vector<Endpoint>{};
}

}  // namespace drun::launcher
