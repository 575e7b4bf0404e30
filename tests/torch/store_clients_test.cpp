// drun's clients and drunctl against PyTorch's own TCPStore servers: torch 1.13, which speaks an
// older version, and 2.x where scripts/torch-chroot has made a folder with it.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drun/store/barrier.hpp"
#include "drun/store/client.hpp"
#include "drun/store/lease.hpp"
#include "support/awaited_client.hpp"
#include "support/drun_process.hpp"
#include "support/every_call.hpp"
#include "support/places.hpp"

namespace drun::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr milliseconds kTorchPatience{150'000};
const std::string kDrunctl = places::program("drunctl");

// Serves three empty stores; Debian's torch 2.x has no libuv, and 1.13 no such argument.
constexpr const char* kServers = R"(
import signal, torch.distributed as d
def serve(**more):
    return d.TCPStore('127.0.0.1', 0, is_master=True, wait_for_workers=False, **more)
try:
    stores = [serve(use_libuv=False) for _ in range(3)]
except TypeError:
    stores = [serve() for _ in range(3)]
print(*[store.port for store in stores], 'ready', flush=True)
signal.pause()
)";

struct Release {
  const char* name;  // of the folder; "": this machine's
  StoreAge age;
};

class TorchServerTest : public testing::TestWithParam<Release> {
 protected:
  void SetUp() override {
    Launch launch;
    const std::string folder = GetParam().name;
    if (folder.empty()) {
      const std::string python = python_with_torch();
      if (python.empty()) GTEST_SKIP() << "no Python with torch on this machine";
      launch.argv = {python, "-c", kServers};
    } else {
      if (::geteuid() != 0) GTEST_SKIP() << "entering another Debian's folder needs root";
      const std::string tool = places::source("scripts/torch-chroot");
      if (DrunProcess(torch({tool, "path", folder})).finish().code != 0)
        GTEST_SKIP() << "no folder with a newer torch: scripts/torch-chroot create " << folder;
      launch = torch({tool, "run", folder, "/usr/bin/python3", "-c", kServers});
    }
    server_ = std::make_unique<DrunProcess>(std::move(launch));
    ASSERT_TRUE(server_->wait_for_out("ready", kTorchPatience)) << server_->err();
    std::istringstream ports(server_->out());
    for (int port = 0; ports >> port;)
      stores_.push_back({"127.0.0.1", static_cast<std::uint16_t>(port)});
    ASSERT_EQ(stores_.size(), 3U);
  }

  static Launch torch(std::vector<std::string> argv) {
    Launch launch;
    launch.argv = std::move(argv);
    if (const char* roots = std::getenv("DRUN_TORCH_ROOTS"))
      launch.environment = {std::string("DRUN_TORCH_ROOTS=") + roots};
    return launch;
  }

  // drunctl against the third store.
  Finished ctl(std::vector<std::string> arguments) const {
    Launch launch;
    launch.argv = std::move(arguments);
    launch.argv.insert(launch.argv.begin(), kDrunctl);
    launch.environment = {"DRUN_STORE=" + to_string(stores_[2])};
    return DrunProcess(std::move(launch)).finish();
  }

  std::unique_ptr<DrunProcess> server_;
  std::vector<Endpoint> stores_;
};

TEST_P(TorchServerTest, ServesDrunsClientsAndDrunctl) {
  const auto deadline = store::Client::Clock::now() + 60s;
  {
    SCOPED_TRACE("synchronous");
    make_every_call([&] { return store::Client::connect(stores_[0], deadline); }, GetParam().age);
  }
  {
    SCOPED_TRACE("asynchronous");
    make_every_call([&] { return AwaitedClient::connect(stores_[1], deadline); }, GetParam().age);
  }
  SCOPED_TRACE("drunctl");
  EXPECT_EQ(ctl({"set", "k", "some\nbytes"}).code, 0);
  EXPECT_EQ(ctl({"get", "k"}).out, "some\nbytes");
  EXPECT_EQ(ctl({"get", "k", "--json"}).out, "{\"key\":\"k\",\"value\":\"some\\nbytes\"}\n");
  EXPECT_EQ(ctl({"get", "missing"}).code, 1);
  EXPECT_EQ(ctl({"add", "n", "41"}).out, "41\n");
  EXPECT_EQ(ctl({"add", "n"}).out, "42\n");
  EXPECT_EQ(ctl({"compare-set", "c", "", "one"}).code, 0);
  EXPECT_EQ(ctl({"compare-set", "c", "two", "three"}).code, 1);
  EXPECT_EQ(ctl({"check", "k", "n"}).code, 0);
  EXPECT_EQ(ctl({"check", "missing"}).code, 1);
  EXPECT_EQ(ctl({"wait", "k", "n"}).code, 0);
  EXPECT_EQ(ctl({"wait", "never", "--timeout", "50ms"}).code, 124);
  EXPECT_EQ(ctl({"delete", "c"}).code, 0);
  EXPECT_EQ(ctl({"delete", "c"}).code, 1);
  EXPECT_THAT(ctl({"ping"}).out, HasSubstr("answers in"));
  // A request that the store does not know is an answer, not a hang.
  const bool lists = GetParam().age >= StoreAge::Torch214;
  EXPECT_EQ(ctl({"keys"}).code, lists ? 0 : 125);
  EXPECT_EQ(ctl({"barrier", "b", "1"}).code, lists ? 0 : 125);
  EXPECT_EQ(ctl({"watch", "--timeout", "5s"}).code, 125);
  const Finished stats = ctl({"stats", "--timeout", "5s"});
  EXPECT_EQ(stats.code, 125);
  EXPECT_THAT(split_lines(stats.err), testing::SizeIs(1)) << stats.err;
}

TEST_P(TorchServerTest, ServesTheExampleOfAnAllGather) {
  Launch launch;
  launch.environment = {"STORE_PORT=" + std::to_string(stores_[0].port)};
  const Finished finished = run_drun(
      {"--nproc-per-node", "3", "sh", "-c",
       "MASTER_ADDR=127.0.0.1 MASTER_PORT=$STORE_PORT exec " + places::program("allgather")},
      launch);
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(split_lines(finished.out),
              testing::UnorderedElementsAre("rank 0 of 3 got 0 1 4", "rank 1 of 3 got 0 1 4",
                                            "rank 2 of 3 got 0 1 4"));
}

TEST_P(TorchServerTest, ServesBarriersAndLeases) {
  const auto connect = [&] { return store::Client::connect(stores_[0], kTorchPatience).value(); };
  auto other = std::async(std::launch::async, [&] {
    store::Client client = connect();
    store::Barrier barrier(client, "twice", 2);
    return barrier.arrive_and_wait(kPatience).and_then(
        [&](Done) { return barrier.arrive_and_wait(kPatience); });
  });
  store::Client client = connect();
  store::Barrier barrier(client, "twice", 2);
  for (int i = 0; i < 2; ++i) {
    const Status passed = barrier.arrive_and_wait(kPatience);
    EXPECT_TRUE(passed) << passed.error().what();
  }
  EXPECT_TRUE(other.get());

  store::Election first(connect(), "chief", "a");
  ASSERT_TRUE(first.campaign(kPatience));
  auto elected = std::async(std::launch::async, [&] {
    store::Election second(connect(), "chief", "b");
    const Status status = second.campaign(kPatience);
    return status.ok() ? second.term() : 0;
  });
  first.resign();
  EXPECT_EQ(elected.get(), 2);
  // What a killed holder leaves.
  ASSERT_TRUE(client.set("lease/dead/holder", "1 200 id text"));
  const auto lease = store::Lease::acquire(connect(), "dead", {}, kPatience);
  ASSERT_TRUE(lease) << lease.error().what();
  EXPECT_EQ(lease->term(), 2);
}

// Each looks at what the holder leaves while the one who follows it deletes that.
TEST_P(TorchServerTest, ServesManyWhoWantOneLease) {
  constexpr int kContenders = 6;
  constexpr int kTimes = 25;
  std::vector<std::future<std::string>> contenders;
  for (int i = 0; i < kContenders; ++i) {
    contenders.push_back(std::async(std::launch::async, [&]() -> std::string {
      for (int time = 0; time < kTimes; ++time) {
        auto client = store::Client::connect(stores_[0], kTorchPatience);
        if (!client) return client.error().what();
        auto lease = store::Lease::acquire(std::move(client).value(), "wanted",
                                           {.time_to_live = 10ms}, kTorchPatience);
        if (!lease) return lease.error().what();
        std::this_thread::sleep_for(5ms);  // its time to live has to be renewed
        (void)lease->release();            // a busy machine may have taken it away
      }
      return "all";
    }));
  }
  for (auto& contender : contenders)
    EXPECT_EQ(contender.get(), "all");
}

INSTANTIATE_TEST_SUITE_P(Releases, TorchServerTest,
                         testing::Values(Release{"", StoreAge::Torch113},
                                         Release{"trixie", StoreAge::Torch26},
                                         Release{"forky", StoreAge::Torch214}),
                         [](const auto& chosen) {
                           switch (chosen.param.age) {
                             case StoreAge::Torch113:
                               return "Torch113";
                             case StoreAge::Torch26:
                               return "Torch26";
                             default:
                               return "Torch214";
                           }
                         });

}  // namespace
}  // namespace drun::test
