// What drunctl tells of jobs, whose documents in the store the test writes, and of this host.
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "base/random_bytes.hpp"
#include "ctl/job_key.hpp"
#include "drun/base/endpoint.hpp"
#include "drun/events/event.hpp"
#include "rendezvous/documents.hpp"
#include "rendezvous/keys.hpp"
#include "secure/tls_context.hpp"
#include "secure/token.hpp"
#include "status/agent_socket.hpp"
#include "support/drun_process.hpp"
#include "support/patience.hpp"
#include "support/places.hpp"
#include "support/scripted_peer.hpp"
#include "support/silent_place.hpp"
#include "support/store_thread.hpp"

namespace drun::ctl {
namespace {

using test::DrunProcess;
using test::Finished;
using test::kPatience;
using test::TempDir;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string kDrunctl = places::program("drunctl");

DrunProcess start(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
  arguments.insert(arguments.begin(), kDrunctl);
  return DrunProcess(test::Launch{std::move(arguments), std::move(environment), {}});
}

class DrunctlJobTest : public testing::Test {
 protected:
  Finished ctl(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"--endpoint", to_string(store_->endpoint())});
    return start(std::move(arguments)).finish();
  }
  void write(const std::string& key, const std::string& text) const {
    EXPECT_EQ(ctl({"--raw", "set", key, text}).code, 0);
  }

  static DrunProcess watch(const Endpoint& endpoint) {
    return start({"--endpoint", to_string(endpoint), "status", "--watch", "train"});
  }

  const rendezvous::Keys keys_{"train"};
  std::optional<test::StoreThread> store_{std::in_place};
};

TEST_F(DrunctlJobTest, OnlyAJobThatIsThereIsDeleted) {
  const Finished none = ctl({"delete-job", "train"});
  EXPECT_EQ(none.code, 1);
  EXPECT_EQ(none.err, "drunctl: error: there is no job 'train'\n");
  write(keys_.outcome, encode(rendezvous::Outcome{}));
  EXPECT_EQ(ctl({"delete-job", "train"}).code, 0);
  EXPECT_EQ(ctl({"jobs"}).out, "");
}

// They would be waited for in vain.
TEST_F(DrunctlJobTest, OfAJobWithoutWorkersThereAreNoStacks) {
  write(keys_.job, encode(rendezvous::JobDocument{}));
  const Finished none = ctl({"stacks", "train"});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, HasSubstr("no job 'train' with workers is at "));
}

TEST_F(DrunctlJobTest, WhoWatchesAJobFindsItAgainWhenItsStoreIsBack) {
  const std::uint16_t port = store_->endpoint().port;
  write(keys_.job, encode(rendezvous::JobDocument{}));
  DrunProcess job = watch(store_->endpoint());
  ASSERT_TRUE(job.wait_for_out("job train")) << job.err();
  store_.reset();
  {
    const test::ScriptedPeer other([](test::ScriptedConnection&) {}, port);  // which closes at once
    ASSERT_TRUE(test::eventually([&] { return other.connections() >= 2; }));
  }
  store_.emplace(port);
  write(keys_.outcome, encode(rendezvous::Outcome{}));
  const Finished ended = job.finish();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("job train: succeeded"));
}

TEST_F(DrunctlJobTest, WhoWatchesAJobSeesWhatHasHappenedMeanwhile) {
  test::Wire wire(store_->endpoint());
  write(keys_.job, encode(rendezvous::JobDocument{}));
  DrunProcess job = watch(wire.endpoint());
  ASSERT_TRUE(job.wait_for_out("job train")) << job.err();
  job.signal(SIGSTOP);
  wire.cut();
  ASSERT_TRUE(test::eventually([&] { return test::connections_at(wire.endpoint()) == 0; }));
  write(keys_.outcome, encode(rendezvous::Outcome{}));
  job.signal(SIGCONT);
  const Finished ended = job.finish();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("job train: succeeded"));
}

// A file that is given twice, or of which another has a part.
TEST(DrunctlTimelineTest, WhatIsLeftOutOfAFileIsSaid) {
  const TempDir folder;
  events::Event event;
  event.kind = events::Kind::LeaderElected;
  event.time_ns = 1'764'340'200'000'000'000;
  event.run_id = "train";
  event.node = event.hostname = "node1";
  const std::string events = folder.write("events.jsonl", to_json(event) + "\n");
  const Finished once = start({"timeline", events}).finish();
  EXPECT_EQ(once.code, 0);
  EXPECT_THAT(once.err, Not(HasSubstr("left out")));
  const Finished twice = start({"timeline", events, events}).finish();
  EXPECT_EQ(twice.code, 0);
  EXPECT_THAT(twice.err, HasSubstr("events.jsonl: 1 event seen before left out\n"));
  EXPECT_THAT(twice.out, HasSubstr("events.jsonl: 1 event seen before left out"));
}

// Not beside drunctl.
TEST(DrunctlDoctorTest, DrunIsFoundInThePath) {
  const TempDir folder;
  const std::string own = folder.path() / "drunctl";
  std::filesystem::copy_file(kDrunctl, own);
  const auto says = [&](const std::string& path) {
    return DrunProcess(test::Launch{{own, "doctor", "--", "true"}, {"PATH=" + path}, {}})
        .finish()
        .out;
  };
  const std::string usual = "/usr/bin:/bin";
  EXPECT_THAT(says(usual), HasSubstr("there is no drun beside drunctl or in PATH"));
  std::filesystem::create_directory(folder.path() / "bin");
  (void)folder.write("bin/drun", "#!/bin/sh\n", true);
  EXPECT_THAT(says(usual + ":" + (folder.path() / "bin").string()),
              HasSubstr("true can be started"));
}

// An abstract socket of this user's that is called so.
FileDescriptor named_socket(const std::string& name) {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  return socket;
}

TEST(DrunctlHereTest, AnAgentThatHasGoneIsPassedOver) {
  const std::string job = random_name(16);
  const FileDescriptor agent = named_socket(status::new_socket_name(::geteuid(), job));
  const Finished status = start({"status", job}).finish();
  EXPECT_EQ(status.code, 4);
  EXPECT_THAT(status.err,
              StartsWith("drunctl: error: no drun of this user runs here with job " + job));
}

store::ServerOptions served_with(std::shared_ptr<const secure::TlsContext> tls) {
  store::ServerOptions options;
  options.tls = std::move(tls);
  return options;
}

// The store of a job with a token, and who gives its key to whoever asks for it.
class KeyGiver {
 public:
  KeyGiver(const std::string& job, const std::string& token)
      : tls_(secure::TlsContext::of(secure::Token::from(token).value()).value()),
        store_(0, served_with(tls_)),
        answer_(tls_->secret() + place()),
        listener_(named_socket(status::new_key_socket_name(::geteuid(), job))) {
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    thread_ = std::thread([this] {
      for (;;) {
        const FileDescriptor asker(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!asker) return;
        (void)::send(asker.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL);
      }
    });
  }
  KeyGiver(const KeyGiver&) = delete;
  KeyGiver& operator=(const KeyGiver&) = delete;
  ~KeyGiver() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  [[nodiscard]] std::string key() const { return tls_->secret(); }
  [[nodiscard]] std::string place() const { return to_string(store_.endpoint()); }

 private:
  const std::shared_ptr<const secure::TlsContext> tls_;
  const test::StoreThread store_;
  const std::string answer_;
  const FileDescriptor listener_;
  std::thread thread_;
};

// One with the key of the other would be a stranger at its store.
TEST(JobKeyTest, OfTwoJobsOfOneNameEachHasItsOwn) {
  const std::string job = random_name(16);
  const KeyGiver one(job, "the-token-of-one-job");
  const KeyGiver other(job, "the-token-of-another");
  // Whoever does not answer at once is left out.
  for (const KeyGiver* giver : {&one, &other})
    EXPECT_TRUE(test::eventually([&] {
      const Tls key = made_key(job, giver->place(), std::chrono::steady_clock::now() + kPatience);
      return key && key->secret() == giver->key();
    }));
}

}  // namespace
}  // namespace drun::ctl
