// How an etcd v3 cluster is reached, and for how long it may be out of reach.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "drun/base/endpoint.hpp"

namespace drun::etcd {

// Files in PEM form; empty: the system's certificates, and none of one's own.
struct Tls {
  bool used = false;
  std::string ca_file;
  std::string certificate_file;
  std::string key_file;

  bool operator==(const Tls&) const = default;
};

// Where the members of the cluster are, and who asks.
struct Cluster {
  std::vector<Endpoint> endpoints;  // one at the least; each is tried in turn
  Tls tls;
  std::string user;  // empty: the cluster asks for none
  std::string password;

  bool operator==(const Cluster&) const = default;
};

// For the user: "etcd at e1:2379,e2:2379".
[[nodiscard]] inline std::string describe(const Cluster& cluster) {
  std::string text = "etcd at ";
  for (const Endpoint& each : cluster.endpoints)
    text += (text.ends_with(' ') ? "" : ",") + to_string(each);
  return text;
}

struct EtcdOptions {
  Cluster cluster;
  // The keys of the job begin so. What is not ephemeral outlives the job's last agent for a while.
  std::string job;
  // Until the first session: attempts go on for this long.
  std::chrono::milliseconds connect_timeout{60'000};
  // The session ends when etcd has not heard from it for this long; in whole seconds, at least.
  std::chrono::milliseconds time_to_live{10'000};
  std::chrono::milliseconds heartbeat_interval{1'000};
  // A heartbeat that is not answered within the first, or any request within the second, breaks the
  // connection.
  std::chrono::milliseconds heartbeat_timeout{3'000};
  std::chrono::milliseconds read_timeout{60'000};
  // After a break: attempts for this long.
  std::chrono::milliseconds keep_alive{6'000};
};

}  // namespace drun::etcd
