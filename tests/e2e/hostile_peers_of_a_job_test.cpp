// A job on a store that others use, too, who want much of it: the job lives.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/exit_codes.hpp"
#include "support/drun_process.hpp"
#include "support/places.hpp"
#include "support/raw_connection.hpp"

namespace drun::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// Connections that watch one key, each as often as it may, and read what they are told.
class Watchers {
 public:
  Watchers(const Endpoint& endpoint, int connections) {
    std::string bytes;
    store::control::encode_opening(bytes);
    for (std::uint64_t id = 1; id <= 64; ++id)
      store::control::encode(bytes, id, store::control::Request(store::control::Watch{"k", false}));
    for (int i = 0; i < connections; ++i)
      EXPECT_TRUE(connections_.emplace_back(endpoint).send(bytes));
    reader_ = std::thread([this] { read(); });
  }
  Watchers(const Watchers&) = delete;
  Watchers& operator=(const Watchers&) = delete;
  ~Watchers() {
    stop_ = true;
    reader_.join();
  }

 private:
  void read() {
    std::vector<pollfd> polls;
    for (const RawConnection& connection : connections_)
      polls.push_back({connection.fd(), POLLIN, 0});
    std::vector<char> bytes(1 << 20);
    while (!stop_) {
      ::poll(polls.data(), polls.size(), 100);
      for (pollfd& poll : polls)
        if (poll.revents != 0 && ::recv(poll.fd, bytes.data(), bytes.size(), MSG_DONTWAIT) == 0)
          poll.fd = -1;
    }
  }

  std::vector<RawConnection> connections_;
  std::atomic<bool> stop_{false};
  std::thread reader_;
};

// Writes one key, again and again, and waits for nothing.
class Writer {
 public:
  explicit Writer(const Endpoint& endpoint) : connection_(endpoint), thread_([this] { write(); }) {}
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() {
    ::shutdown(connection_.fd(), SHUT_RDWR);
    thread_.join();
  }

 private:
  void write() {
    std::string requests;
    for (int i = 0; i < 1000; ++i)
      requests += set_request("k", "v");
    for (int left = 30; left > 0 && connection_.send(requests); --left) {
    }
  }

  TcpStoreConnection connection_;
  std::thread thread_;
};

TEST(HostilePeersOfAJobTest, AChangeThatVeryManyAreToldOfEndsNoJob) {
  const TempDir directory;
  const auto end = directory.path() / "end";
  DrunProcess store(
      Launch{{places::program("drun-store"), "--bind", "127.0.0.1", "--port", "0"}, {}, {}});
  ASSERT_TRUE(store.wait_for_out("\n")) << store.err();
  const std::string address = store.out().substr(0, store.out().find('\n'));
  const Endpoint endpoint = parse_endpoint(address, 0).value();
  const Arguments node = {"--nnodes",
                          "2",
                          "--rdzv-endpoint",
                          address,
                          "--rdzv-id",
                          "job",
                          "--rdzv-conf",
                          "is_host=0",
                          "sh",
                          "-c",
                          "echo ready; until [ -e " + end.string() + " ]; do sleep 0.05; done"};
  DrunProcess first(node);
  DrunProcess second(node);
  ASSERT_TRUE(first.wait_for_out("ready")) << first.err();
  ASSERT_TRUE(second.wait_for_out("ready")) << second.err();
  {
    const Watchers watchers(endpoint, 300);
    const Writer writer(endpoint);
    // Twice the time after which an agent gives up a store that it does not hear of, and some.
    (void)first.wait(15s);
  }
  const FileDescriptor made(::creat(end.c_str(), 0600));
  for (DrunProcess* agent : {&first, &second}) {
    const Finished finished = agent->finish();
    EXPECT_EQ(finished.code, 0) << finished.err;
  }
}

// drun with a limit of open descriptors.
Launch limited(int descriptors, const Arguments& arguments) {
  const std::string command = "ulimit -n " + std::to_string(descriptors) + "; exec \"$0\" \"$@\"";
  return {Arguments{"/bin/sh", "-c", command, drun_path()} + arguments, {}, {}};
}

// An agent has descriptors left for a restart, and agents and workers find room at its store.
TEST(HostilePeersOfAJobTest, ConnectionsThatSayNothingEndNoJob) {
  const TempDir directory;
  const ReservedPort port;
  const auto end = directory.path() / "end";
  const Arguments node = {"--nnodes",
                          "2",
                          "--max-restarts",
                          "1",
                          "--rdzv-endpoint",
                          port.endpoint(),
                          "sh",
                          "-c",
                          "echo ready $TORCHELASTIC_RESTART_COUNT; until [ -e " + end.string() +
                              " ]; do sleep 0.05; done; [ $TORCHELASTIC_RESTART_COUNT = 1 ]"};
  DrunProcess first(limited(256, node));
  DrunProcess second(limited(256, node));
  ASSERT_TRUE(first.wait_for_out("ready 0")) << first.err();
  ASSERT_TRUE(second.wait_for_out("ready 0")) << second.err();
  std::vector<RawConnection> silent;
  for (int i = 0; i < 300; ++i)
    silent.emplace_back(parse_endpoint(port.endpoint(), 0).value());
  const FileDescriptor made(::creat(end.c_str(), 0600));
  for (DrunProcess* agent : {&first, &second}) {
    const Finished finished = agent->finish();
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_NE(finished.out.find("ready 1"), std::string::npos) << finished.err;
  }
}

// The others would wait for it.
TEST(HostilePeersOfAJobTest, ANodeWithTooFewDescriptorsSaysSoBeforeItJoins) {
  const ReservedPort port;
  const Finished node = DrunProcess(limited(40, {"--nnodes", "2", "--nproc-per-node", "2",
                                                 "--rdzv-endpoint", port.endpoint(), "true"}))
                            .finish();
  EXPECT_EQ(node.code, kDrunFailed);
  EXPECT_NE(node.err.find("an agent with 2 workers needs 42 open descriptors, and the hard limit "
                          "is 40; raise it (ulimit -n)"),
            std::string::npos)
      << node.err;
}

}  // namespace
}  // namespace drun::test
