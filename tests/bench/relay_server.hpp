// A store of a job's workers with the relay of one node before it, in one process.
#pragma once

namespace drun::bench {

// Serves for ever on a free loopback port, which is the relay's; writes "127.0.0.1:port\n" to `out`
// when it listens. With a token relay and store speak TLS.
void serve_relayed(bool with_token, int out);

}  // namespace drun::bench
