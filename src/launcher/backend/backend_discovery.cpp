#include "launcher/backend/backend_discovery.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/addresses.hpp"
#include "base/file_descriptor.hpp"

namespace drun::launcher {

BackendDiscovery::BackendDiscovery(asio::io_context& io, StartLookUp start_look_up)
    : start_look_up_(std::move(start_look_up)), answered_(io) {}

void BackendDiscovery::ask(const Endpoint& endpoint, Answer answer) {
  const auto numeric = numeric_addresses(endpoint.host);
  if (!numeric.empty()) return answer(is_own_address(numeric.front()));
  answer_ = std::move(answer);
  look_up_ = start_look_up_(endpoint);
  answered_.assign(duplicate(look_up_->fd(), "look up a name").release());
  answered_.async_wait(asio::posix::descriptor_base::wait_read, [this](std::error_code cancelled) {
    if (!cancelled && look_up_) on_answer();
  });
}

void BackendDiscovery::on_answer() {
  const auto found = look_up_->receive();
  const auto answer = std::move(answer_);
  abandon();
  if (!*found) return answer(found->error());
  answer(std::any_of((*found)->begin(), (*found)->end(), [](const store::SocketAddress& each) {
    return is_own_address(store::to_endpoint(each).host);
  }));
}

void BackendDiscovery::abandon() {
  std::error_code ignored;
  answered_.close(ignored);
  look_up_.reset();
}

}  // namespace drun::launcher
