#include "bench/relay_server.hpp"

#include <unistd.h>

#include <memory>
#include <string>

#include "base/fd_limit.hpp"
#include "drun/base/endpoint.hpp"
#include "drun/store/server.hpp"
#include "secure/tls_context.hpp"
#include "secure/token.hpp"
#include "store/relay/relay.hpp"

namespace drun::bench {

void serve_relayed(bool with_token, int out) {
  raise_fd_limit();
  store::ServerOptions options;
  if (with_token)
    options.tls =
        secure::TlsContext::of(secure::Token::from("a-token-of-a-bench-0123456789abc").value())
            .value();
  options.workers_need_token = true;
  store::Server server(options);
  const Endpoint store = server.add_listener({"127.0.0.1", 0}, store::Table::Workers).value();
  store::RelayOptions relayed;
  relayed.tls = options.tls;
  relayed.clients = 100'000;
  store::Relay relay(relayed);
  const std::string line = to_string(relay.begin(store).value()) + "\n";
  [[maybe_unused]] const ssize_t written = ::write(out, line.data(), line.size());
  server.run();
}

}  // namespace drun::bench
