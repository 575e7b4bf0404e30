// drun-store as a program: its life, and real torch clients that it serves.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "drun/store/client.hpp"
#include "support/drun_process.hpp"
#include "support/full_pipe.hpp"
#include "support/places.hpp"
#include "support/process_state.hpp"

namespace drun::store {
namespace {

using namespace std::chrono_literals;
using test::DrunProcess;
using test::Finished;
using test::kPatience;
using testing::HasSubstr;

const std::string kDrunStore = places::program("drun-store");

test::Launch launch(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), kDrunStore);
  return {std::move(arguments), {}, {}};
}

// A running drun-store on a free loopback port.
class DrunStore {
 public:
  explicit DrunStore(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"--bind", "127.0.0.1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    if (more.empty()) arguments.insert(arguments.end(), {"--port", "0"});
    process_ = std::make_unique<DrunProcess>(launch(arguments));
    EXPECT_TRUE(process_->wait_for_out("\n")) << process_->err();
    endpoint_ = process_->out().substr(0, process_->out().find('\n'));
  }
  DrunProcess& process() { return *process_; }
  const std::string& endpoint() const { return endpoint_; }
  Result<Client> client(ClientOptions options = {}) const {
    return Client::connect(parse_endpoint(endpoint_, 0).value(), Client::Clock::now() + kPatience,
                           options);
  }

 private:
  std::unique_ptr<DrunProcess> process_;
  std::string endpoint_;
};

TEST(DrunStoreTest, PrintsItsEndpointAndServesUntilItIsTold) {
  for (const int signal : {SIGTERM, SIGINT}) {
    DrunStore store;
    EXPECT_THAT(store.endpoint(), testing::StartsWith("127.0.0.1:"));
    auto client = store.client();
    ASSERT_TRUE(client) << client.error().what();
    ASSERT_TRUE(client->set("k", "v"));
    EXPECT_EQ(client->get("k").value(), "v");
    store.process().signal(signal);
    const Finished finished = store.process().finish();
    EXPECT_EQ(finished.code, 0);
    EXPECT_EQ(finished.out, store.endpoint() + "\n") << "nothing else on standard output";
    EXPECT_EQ(finished.err, "");
    EXPECT_FALSE(client->ping(kPatience));
  }
}

// Each alone would end it; who has no patience sends many.
TEST(DrunStoreTest, ASecondSignalDoesNotCutItsEndShort) {
  const test::TempDir directory;
  const std::string file = (directory.path() / "snapshot").string();
  DrunStore store({"--port", "0", "--snapshot", file});
  auto client = store.client();
  ASSERT_TRUE(client && client->set("k", "v") && client->get("k"));
  for (int i = 0; i < 5; ++i) {
    store.process().signal(SIGTERM);
    store.process().signal(SIGINT);
  }
  EXPECT_EQ(store.process().finish().code, 0);
  DrunStore next({"--port", "0", "--snapshot", file});
  EXPECT_EQ(next.client().value().get("k").value(), "v");
}

// Its signals of its own hold up no other: those do what they always do.
TEST(DrunStoreTest, EndsOnOtherSignalsAsAnyProgram) {
  for (const int signal : {SIGHUP, SIGUSR1, SIGALRM}) {
    DrunStore store;
    ASSERT_TRUE(store.client());
    store.process().signal(signal);
    EXPECT_EQ(store.process().finish().code, 128 + signal);
  }
}

// Whoever has read the endpoint may end it at once: the signals are taken before that. A pipe that
// is full holds it up there.
TEST(DrunStoreTest, EndsInOrderAsSoonAsItHasSaidItsEndpoint) {
  const test::TempDir directory;
  const std::string path = (directory.path() / "out").string();
  ASSERT_EQ(::mkfifo(path.c_str(), S_IRUSR | S_IWUSR), 0);
  const FileDescriptor pipe(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  ASSERT_GT(test::fill_pipe(pipe.get(), std::string(4096, '.')), 0U);
  test::Launch held_up;
  held_up.argv = {"/bin/sh", "-c", "exec \"$0\" --bind 127.0.0.1 --port 0 >\"$1\"", kDrunStore,
                  path};
  DrunProcess store(held_up);
  ASSERT_TRUE(test::eventually([&] { return test::in_set(store.pid(), "SigBlk", SIGTERM); }));
  store.signal(SIGTERM);
  char drained[4096];
  while (::read(pipe.get(), drained, sizeof drained) > 0) {
  }
  const Finished finished = store.finish();
  EXPECT_EQ(finished.code, 0) << finished.err;
}

TEST(DrunStoreTest, TakesOverThePortOfOneThatWasKilled) {
  const test::ReservedPort reserved;
  const std::string port = std::to_string(reserved.number());
  auto first = std::make_unique<DrunStore>(std::vector<std::string>{"--port", port});
  auto client = first->client();
  ASSERT_TRUE(client);
  first->process().signal(SIGKILL);
  ASSERT_TRUE(first->process().wait());
  DrunStore second({"--port", port});
  EXPECT_EQ(second.endpoint(), first->endpoint());
  EXPECT_TRUE(second.client());
}

TEST(DrunStoreTest, KeepsItsKeysInASnapshotAndRefusesADamagedOne) {
  test::TempDir directory;
  const std::string file = (directory.path() / "snapshot").string();
  {
    DrunStore store({"--port", "0", "--snapshot", file});
    auto client = store.client();
    ASSERT_TRUE(client);
    ASSERT_TRUE(client->set("k", std::string("\0v", 2)));
    ASSERT_EQ(client->add("n", 7, kPatience).value(), 7);
    store.process().signal(SIGTERM);
    EXPECT_EQ(store.process().finish().code, 0);
  }
  {
    DrunStore store({"--port", "0", "--snapshot", file});
    auto client = store.client();
    ASSERT_TRUE(client);
    EXPECT_EQ(client->get("k", kPatience).value(), std::string("\0v", 2));
    EXPECT_EQ(client->add("n", 1, kPatience).value(), 8);
  }
  const std::string damaged = test::read_file(file).substr(1);
  const std::string path = directory.write("damaged", damaged);
  const Finished refused = DrunProcess(launch({"--port", "0", "--snapshot", path})).finish();
  EXPECT_EQ(refused.code, 125);
  EXPECT_THAT(refused.err, HasSubstr(path));
  EXPECT_EQ(test::read_file(path), damaged) << "left as it is";
}

TEST(DrunStoreTest, BindsTheAddressThatItIsGiven) {
  const struct {
    const char* bind;
    const char* says;       // how the endpoint begins
    const char* reachable;  // an address that leads there
  } cases[] = {{"::1", "[::1]:", "[::1]:"},
               {"[::1]", "[::1]:", "[::1]:"},
               {"127.0.0.2", "127.0.0.2:", "127.0.0.2:"},
               {"localhost", "", "localhost:"},
               {nullptr, "[::]:", "127.0.0.1:"},
               {nullptr, "[::]:", "[::1]:"}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.bind == nullptr ? "all" : c.bind);
    std::vector<std::string> arguments{"--port", "0"};
    if (c.bind != nullptr) arguments.insert(arguments.end(), {"--bind", c.bind});
    DrunProcess store(launch(arguments));
    ASSERT_TRUE(store.wait_for_out("\n")) << store.err();
    const std::string endpoint = store.out().substr(0, store.out().find('\n'));
    EXPECT_THAT(endpoint, testing::StartsWith(c.says));
    const std::string port = endpoint.substr(endpoint.rfind(':') + 1);
    auto client = Client::connect(parse_endpoint(c.reachable + port, 0).value(),
                                  Client::Clock::now() + kPatience, {});
    ASSERT_TRUE(client) << client.error().what();
    EXPECT_EQ(client->add("n", 1, kPatience).value(), 1);
  }
}

// A log line on descriptor 2 must not reach what else would be opened as that.
TEST(DrunStoreTest, ServesWithItsStandardStreamsClosed) {
  test::TempDir directory;
  const test::ReservedPort port;
  const std::string command = "exec " + kDrunStore + " --bind 127.0.0.1 --port " +
                              std::to_string(port.number()) + " --log-level info <&- >&- 2>&-";
  DrunProcess store(test::Launch{{"/bin/sh", "-c", command}, {}, {}});
  const auto connect = [&] {
    return Client::connect(parse_endpoint(port.endpoint(), 0).value(),
                           Client::Clock::now() + kPatience);
  };
  for (int i = 0; i < 3; ++i) {
    auto client = connect();
    ASSERT_TRUE(client) << client.error().what();
    ASSERT_TRUE(client->set("n", "no number"));
    EXPECT_FALSE(client->add("n", 1, kPatience)) << "closed, with a line in the log";
  }
  auto client = connect();
  ASSERT_TRUE(client) << client.error().what();
  EXPECT_EQ(client->get("n", kPatience).value(), "no number");
  store.signal(SIGTERM);
  EXPECT_EQ(store.finish().code, 0);
}

TEST(DrunStoreTest, RefusesASnapshotThatIsNoFile) {
  test::TempDir directory;
  const std::string fifo = (directory.path() / "fifo").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  DrunProcess store(
      test::Launch{{kDrunStore, "--bind", "127.0.0.1", "--port", "0", "--snapshot", fifo}, {}, {}});
  const auto finished = store.finish();
  EXPECT_EQ(finished.code, 125);
  EXPECT_THAT(finished.err, HasSubstr("no regular file"));
}

// The port is another store's, and the snapshot perhaps as well.
TEST(DrunStoreTest, LeavesTheSnapshotAloneWhereThePortIsTaken) {
  test::TempDir directory;
  const test::ReservedPort port;
  const std::string snapshot = (directory.path() / "snapshot").string();
  const test::Launch launch{{kDrunStore, "--bind", "127.0.0.1", "--port",
                             std::to_string(port.number()), "--snapshot", snapshot},
                            {},
                            {}};
  DrunProcess first(launch);
  ASSERT_TRUE(first.wait_for_out("127.0.0.1:")) << first.err();
  (void)directory.write("snapshot.tmp", "being written");
  const auto second = DrunProcess(launch).finish();
  EXPECT_EQ(second.code, 125);
  EXPECT_EQ(test::read_file(snapshot + ".tmp"), "being written");
  first.signal(SIGTERM);
  EXPECT_EQ(first.finish().code, 0);
}

TEST(DrunStoreTest, LeavesASnapshotToTheStoreThatHasIt) {
  test::TempDir directory;
  const std::string file = (directory.path() / "snapshot").string();
  const std::vector<std::string> arguments{
      "--bind", "127.0.0.1", "--port", "0", "--snapshot", file, "--snapshot-interval", "20"};
  auto first = std::make_unique<DrunProcess>(launch(arguments));
  ASSERT_TRUE(first->wait_for_out("\n")) << first->err();
  const auto refused = [&](const char* when) {
    const std::string before = test::read_file(file);
    const Finished second = DrunProcess(launch(arguments)).finish();
    EXPECT_EQ(second.code, 125) << when;
    EXPECT_EQ(second.out, "");
    EXPECT_EQ(second.err, "drun-store: error: another store uses the snapshot " + file + "\n");
    EXPECT_EQ(test::read_file(file), before);
  };
  refused("before the first change");
  auto client =
      Client::connect(parse_endpoint(first->out().substr(0, first->out().find('\n')), 0).value(),
                      Client::Clock::now() + kPatience);
  ASSERT_TRUE(client) << client.error().what();
  ASSERT_TRUE(client->set("k", "in the second file of that name"));
  ASSERT_TRUE(test::eventually(
      [&] { return test::read_file(file).find("in the second file") != std::string::npos; }));
  refused("after the file was replaced");
  first->signal(SIGKILL);
  ASSERT_TRUE(first->wait());
  DrunStore third({"--port", "0", "--snapshot", file});
  auto other = third.client();
  ASSERT_TRUE(other) << third.process().err();
  EXPECT_EQ(other->get("k", kPatience).value(), "in the second file of that name");
  third.process().signal(SIGTERM);
  EXPECT_EQ(third.process().finish().code, 0);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1)
      << "no lock is left lying about";
}

TEST(DrunStoreTest, ANoticeThatCannotBeWrittenEndsIt) {
  DrunProcess store(test::Launch{
      {"/bin/sh", "-c", "exec " + kDrunStore + " --bind 127.0.0.1 --port 0 > /dev/full"}, {}, {}});
  EXPECT_EQ(store.finish().code, 125);
}

// Its folder is renamed under it.
TEST(DrunStoreTest, ServesOnWhileNoSnapshotCanBeBegun) {
  test::TempDir directory;
  const std::filesystem::path folder = directory.path() / "folder";
  const std::filesystem::path elsewhere = directory.path() / "elsewhere";
  std::filesystem::create_directory(folder);
  const std::string file = folder / "store";
  DrunStore store(
      {"--port", "0", "--log-level", "info", "--snapshot-interval", "20", "--snapshot", file});
  std::filesystem::rename(folder, elsewhere);
  auto client = store.client();
  ASSERT_TRUE(client);
  ASSERT_TRUE(client->set("k", "v"));
  const std::string words = "the snapshot is not up to date: create " + file + ".tmp: ";
  EXPECT_TRUE(store.process().wait_for_err(words));
  EXPECT_EQ(client->get("k", kPatience).value(), "v");
  std::filesystem::rename(elsewhere, folder);
  EXPECT_TRUE(store.process().wait_for_err("the snapshot is up to date again"));
  const std::string& err = store.process().err();
  EXPECT_EQ(err.find(words), err.rfind(words)) << "said once: " << err;
}

// A file system of 256 KiB, seen by drun-store alone.
TEST(DrunStoreTest, KeepsTheLastWholeSnapshotWhenTheDiskIsFull) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting a small file system needs root";
  test::TempDir directory;
  const std::string folder = directory.path().string();
  const std::string command = "mount -t tmpfs -o size=256k none " + folder + " && exec " +
                              kDrunStore + " --bind 127.0.0.1 --port 0 --log-level info" +
                              " --snapshot-interval 20 --snapshot " + folder + "/store";
  DrunProcess store(
      test::Launch{{"/usr/bin/unshare", "--mount", "/bin/sh", "-c", command}, {}, {}});
  if (!store.wait_for_out("\n")) GTEST_SKIP() << "no small file system here: " << store.err();
  const std::string endpoint = store.out().substr(0, store.out().find('\n'));
  auto client =
      Client::connect(parse_endpoint(endpoint, 0).value(), Client::Clock::now() + kPatience, {});
  ASSERT_TRUE(client);
  const std::string file = "/proc/" + std::to_string(store.pid()) + "/root" + folder + "/store";
  const auto holds = [&](const char* text) {
    return std::filesystem::exists(file) && test::read_file(file).find(text) != std::string::npos;
  };
  ASSERT_TRUE(client->set("k", "small enough"));
  EXPECT_TRUE(test::eventually([&] { return holds("small enough"); }));
  ASSERT_TRUE(client->set("large", std::string(300'000, 'x')));
  EXPECT_TRUE(store.wait_for_err("the snapshot is not up to date")) << store.err();
  EXPECT_TRUE(store.wait_for_err("No space left on device")) << store.err();
  EXPECT_TRUE(holds("small enough")) << "the last whole one is kept";
  EXPECT_EQ(client->get("k", kPatience).value(), "small enough") << "and everybody is served";
  ASSERT_TRUE(client->delete_key("large", kPatience).value());
  EXPECT_TRUE(store.wait_for_err("the snapshot is up to date again")) << store.err();
  ASSERT_TRUE(client->set("large", std::string(300'000, 'x')));
  EXPECT_EQ(client->get("large", kPatience).value().size(), 300'000U);
  store.signal(SIGTERM);
  EXPECT_EQ(store.finish().code, 125) << "what it held is lost";
}

TEST(DrunStoreTest, SaysInOneLineWhatItCannotDo) {
  DrunStore running;
  const std::string port = running.endpoint().substr(running.endpoint().find(':') + 1);
  const struct {
    std::vector<std::string> arguments;
    int code;
    const char* says;
  } cases[] = {
      {{"--bind", "127.0.0.1", "--port", port}, 125, "Address already in use"},
      {{"--bind", "192.0.2.1", "--port", "0"}, 125, "192.0.2.1"},
      {{"--port", "0", "--snapshot", "/no/such/folder/store"}, 125, "/no/such/folder/store"},
      {{"--port", "0", "--snapshot", "/proc/1"}, 125, "read /proc/1: Is a directory"},
      {{"--port", "0", "--snapshot", "/proc/1/store"}, 125, "/proc/1/store.tmp"},
      {{"--port", "70000"}, 2, "'70000': a port is a number"},
      {{"--bind", "127.0.0.1:5"}, 2, "--bind '127.0.0.1:5'"},
      {{"--bind"}, 2, "--bind needs a value"},
      {{"--max-value", "7X"}, 2, "--max-value '7X': expected a size such as 500K, 100M or 2G"},
      {{"--max-connections", "0"}, 2, "--max-connections '0'"},
      {{"--max-value", "2K", "--max-unread", "2K"}, 2, "--max-unread 2048 is too little"},
      {{"--max-unread", "1M"}, 2, "give --max-value as well"},
      {{"--max-value", "2K", "--max-total", "1K"}, 2, "--max-total 1024 is too little"},
      {{"--max-value", "2048G"}, 2, "at most 1024G"},
      {{"--snapshto", "f"}, 2, "unknown flag '--snapshto'; did you mean --snapshot?"},
      {{"--log-level", "loud"}, 2, "--log-level 'loud'"},
      {{"--log-level", "debug"}, 2, "--log-level 'debug'"},
      {{"--nonsense"}, 2, "unknown flag '--nonsense'"},
      {{"word"}, 2, "'word' is too much"},
  };
  for (const auto& c : cases) {
    const Finished finished = DrunProcess(launch(c.arguments)).finish();
    EXPECT_EQ(finished.code, c.code) << finished.err;
    EXPECT_THAT(finished.err, HasSubstr(c.says));
    EXPECT_EQ(test::split_lines(finished.err).size(), 1U) << finished.err;
    EXPECT_EQ(finished.out, "");
  }
  EXPECT_THAT(DrunProcess(launch({"--help"})).finish().out, HasSubstr("Exit codes"));
}

// What was not given makes room for the longest value.
TEST(DrunStoreTest, AValueOfTheLimitCanBeStoredAndRead) {
  const std::string value(1024, 'x');
  for (const auto& more : {std::vector<std::string>{"--max-unread", "18K"}, {}}) {
    std::vector<std::string> arguments{"--port", "0", "--max-value", more.empty() ? "257M" : "1K"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    DrunStore store(arguments);
    auto client = store.client();
    ASSERT_TRUE(client) << store.process().err();
    ASSERT_TRUE(client->set("k", value));
    EXPECT_EQ(client->get("k", kPatience).value(), value);
  }
}

TEST(DrunStoreTest, HoldsTheLimitsThatItIsGiven) {
  DrunStore store({"--port", "0", "--max-value", "1K", "--max-key", "20"});
  auto client = store.client();
  ASSERT_TRUE(client);
  ASSERT_TRUE(client->set("k", std::string(1024, 'x')));
  EXPECT_EQ(client->get("k", kPatience).value().size(), 1024U);
  ASSERT_TRUE(client->set("k", std::string(1025, 'x')));
  EXPECT_FALSE(client->get("k", kPatience)) << "the connection was closed";
  auto another = store.client();
  ASSERT_TRUE(another);
  EXPECT_FALSE(another->check({std::string(20, 'k')}, kPatience)) << "21 bytes with the slash";
}

// An import of torch takes seconds even on an idle machine, and each process here has its own.
constexpr auto kTorchPatience = 300s;

// Four torch 1.13 clients and one in C++ do all that they can with one another.
constexpr const char* kFleet = R"(
import datetime, os, sys, torch.distributed as dist
host, port = sys.argv[1].rsplit(':', 1)
second = datetime.timedelta(seconds=1)
def worker(rank):
    store = dist.TCPStore(host, int(port), world_size=4, is_master=False, timeout=300 * second)
    store.set(f'rank{rank}', bytes([0, rank, 255]))
    for peer in range(4):
        assert store.get(f'rank{peer}') == bytes([0, peer, 255])
    store.add('sum', rank + 1)
    store.wait(['go'])
    assert store.get('sum') == b'10', store.get('sum')
    first = store.compare_set('winner', '', str(rank))
    assert store.get('winner') == first
    prefixed = dist.PrefixStore(f'own{rank}', store)
    prefixed.set('x', 'y')
    assert prefixed.get('x') == b'y'
    assert store.delete_key(f'own{rank}/x') and not store.delete_key('missing')
    assert store.num_keys() >= 8
    try:
        store.wait(['never'], second / 5)
        raise SystemExit(f'rank {rank}: the wait ended')
    except RuntimeError as error:
        assert 'imeout' in str(error), error
    other = dist.TCPStore(host, int(port), is_master=False, timeout=300 * second)
    other.set(f'done{rank}', 'yes')
children = []
for rank in range(4):
    pid = os.fork()
    if pid == 0:
        worker(rank)
        os._exit(0)
    children.append(pid)
sys.exit(max(os.waitpid(pid, 0)[1] for pid in children) != 0)
)";

TEST(DrunStoreTorchTest, ServesAFleetOfTorch113Clients) {
  const std::string python = test::python_with_torch();
  if (python.empty()) GTEST_SKIP() << "no Python with torch on this machine";
  DrunStore store;
  DrunProcess fleet(test::Launch{{python, "-c", kFleet, store.endpoint()}, {}, {}});
  auto client = store.client();
  ASSERT_TRUE(client);
  ASSERT_TRUE(client->wait({"rank0", "rank1", "rank2", "rank3"}, kTorchPatience));
  EXPECT_EQ(client->get("rank2", kPatience).value(), std::string("\0\x02\xff", 3));
  while (client->get("sum", kTorchPatience).value() != "10") {
  }
  ASSERT_TRUE(client->set("go", ""));
  EXPECT_TRUE(client->wait({"done0", "done1", "done2", "done3"}, kTorchPatience));
  const Finished finished = fleet.finish(kTorchPatience);
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(client->get("init/", 1s).error().code(), Errc::Timeout)
      << "the counter of workers has no slash";
  auto raw = store.client({.version = {}, .prefix = {}, .raw_keys = true});
  EXPECT_EQ(raw->get("init/", kPatience).value(), "4");
}

TEST(DrunStoreTorchTest, IsTheEndpointOfARealTorchrun) {
  const std::string python = test::python_with_torch();
  if (python.empty()) GTEST_SKIP() << "no Python with torch on this machine";
  const Finished version =
      DrunProcess(test::Launch{{python, "-c", "import torch; print(torch.__version__)"}, {}, {}})
          .finish(kTorchPatience);
  if (!version.out.starts_with("1.")) GTEST_SKIP() << "torchrun of torch " << version.out;
  DrunStore store;
  test::TempDir directory;
  const auto agent = [&] {
    // -r and -t name a rank that does not exist: with Python 3.11 this torchrun cannot do without.
    return std::make_unique<DrunProcess>(
        test::Launch{{python,
                      "-m",
                      "torch.distributed.run",
                      "--nnodes",
                      "2",
                      "--nproc_per_node",
                      "2",
                      "--rdzv_backend",
                      "c10d",
                      "--rdzv_endpoint",
                      store.endpoint(),
                      "--rdzv_conf",
                      "is_host=0",
                      "--rdzv_id",
                      "job1",
                      "-r",
                      "9:1",
                      "-t",
                      "9:1",
                      "--no_python",
                      "/bin/sh",
                      "-c",
                      "touch " + directory.path().string() + "/$RANK-of-$WORLD_SIZE"},
                     {"OMP_NUM_THREADS=1"},
                     directory.path()});
  };
  const auto first = agent();
  const auto second = agent();
  EXPECT_EQ(first->finish(kTorchPatience).code, 0) << first->err();
  EXPECT_EQ(second->finish(kTorchPatience).code, 0) << second->err();
  for (const char* name : {"0-of-4", "1-of-4", "2-of-4", "3-of-4"}) {
    EXPECT_TRUE(std::filesystem::exists(directory.path() / name)) << name;
  }
}

}  // namespace
}  // namespace drun::store
