#include "launcher/services/peer_ports.hpp"

#include <utility>

#include <asio/post.hpp>

#include "base/split.hpp"
#include "drun/base/endpoint.hpp"

namespace drun::launcher {

void PeerPorts::ask(const rendezvous::Assignment& assignment, int workers, Done done) {
  std::string text;
  for (int each = 0; each < workers; ++each) {
    auto port = hold_free_port();
    if (!port)
      return asio::post(io_, [this, done = std::move(done), error = port.error()] {
        done(error);
        served_();
      });
    text += (text.empty() ? "" : ",") + to_string(Endpoint{address_, port->port});
    held_.push_back(std::move(*port));
  }
  nodes_.emplace(io_, assignment, "peers", "--framework tensorflow");
  nodes_->begin(0, std::move(text),
                [this, done = std::move(done),
                 size = assignment.world_size](const std::vector<std::string>& texts) {
                  done(places_of(texts, size));
                  served_();
                });
}

void PeerPorts::let_go() {
  nodes_.reset();
  held_.clear();
}

Result<PeerDirectory::Places> places_of(const std::vector<std::string>& texts, int world_size) {
  PeerDirectory::Places result;
  for (const std::string& text : texts) {
    std::string_view rest = text;
    do {
      const std::string_view each = take_until(rest, ',');
      // It came over a network.
      const auto place = parse_endpoint(each, 0);
      if (!place || place->port == 0)
        return Error(std::make_error_code(std::errc::bad_message), "no place of a rank");
      result.push_back(to_string(*place));
    } while (!rest.empty());
  }
  if (result.size() != static_cast<std::size_t>(world_size))
    return Error(std::make_error_code(std::errc::bad_message), "not one place for each rank");
  return result;
}

}  // namespace drun::launcher
