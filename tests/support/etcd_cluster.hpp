// A cluster of etcd, as Debian's etcd-server has it, on ports of its own: its members are killed,
// stopped and started again one by one. One thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "drun/base/endpoint.hpp"
#include "support/drun_process.hpp"

namespace drun::test {

class EtcdCluster {
 public:
  // `more`: flags for every member. With "--auto-tls" or "--cert-file" clients are spoken to by TLS
  // alone.
  explicit EtcdCluster(std::size_t members = 1, Arguments more = {});
  EtcdCluster(const EtcdCluster&) = delete;
  EtcdCluster& operator=(const EtcdCluster&) = delete;
  ~EtcdCluster();

  // False: the machine has no etcd.
  [[nodiscard]] static bool installed();
  // Until each of those that run answers for a majority; false: not in time.
  [[nodiscard]] bool ready();

  [[nodiscard]] std::size_t size() const { return members_.size(); }
  [[nodiscard]] Endpoint endpoint(std::size_t member) const;
  // "127.0.0.1:1,127.0.0.1:2", as drun takes it.
  [[nodiscard]] std::string endpoints() const;
  // What signs the certificate of a member that speaks TLS.
  [[nodiscard]] std::string certificate(std::size_t member) const;

  void signal(std::size_t member, int number);
  void kill(std::size_t member);
  void start(std::size_t member);
  // The member that leads; size(): none answers that there is one.
  [[nodiscard]] std::size_t leader();
  // Until another than `before` leads; false: not in time.
  [[nodiscard]] bool elected(std::size_t before);

  // The body of the answer to a POST, "" without one.
  [[nodiscard]] std::string post(const std::string& path, const std::string& body,
                                 std::size_t member = 0);
  // What the members have said, for a test that fails.
  [[nodiscard]] std::string logs() const;

 private:
  struct Member {
    ReservedPort client;
    ReservedPort peer;
    pid_t pid = -1;
    bool stopped = false;
  };
  [[nodiscard]] std::string name(std::size_t member) const;
  [[nodiscard]] std::filesystem::path folder(std::size_t member) const;

  TempDir folder_;
  const Arguments more_;
  const bool tls_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace drun::test
