// Frames over real pipes.
#include "launcher/starter/frame_link.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/launcher/starter/starter_rig.hpp"
#include "support/pipe.hpp"

namespace drun::launcher {
namespace {

using drun::test::Pipe;
using hosts::encode;
using hosts::Frame;
using hosts::FrameType;
using test::run_until;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A link whose other side is the test's.
class FrameLinkTest : public ::testing::Test {
 protected:
  void begin(bool marked) {
    Pipe in;
    Pipe out;
    to_link_ = std::move(in.write);
    from_link_ = std::move(out.read);
    ::fcntl(from_link_.get(), F_SETFL, O_NONBLOCK);
    link_ = std::make_unique<FrameLink>(
        io_, std::move(in.read), std::move(out.write), marked,
        FrameLink::Calls{[this](const Frame& frame) { frames_.push_back(frame); },
                         [](const std::string&) {}, [this](const std::string&) { ++closed_; }});
    link_->start();
  }
  ~FrameLinkTest() override {
    if (link_) link_->end();
    io_.restart();
    io_.poll();
  }
  void write(const std::string& bytes) const {
    ASSERT_EQ(::write(to_link_.get(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }
  [[nodiscard]] bool until(const std::function<bool()>& condition) {
    return run_until(io_, condition);
  }
  // Reads what the link has sent; true at its end.
  [[nodiscard]] bool read() {
    std::string some(1 << 16, '\0');
    const ssize_t size = ::read(from_link_.get(), some.data(), some.size());
    if (size > 0) sent_ += some.substr(0, static_cast<std::size_t>(size));
    return size == 0;
  }

  asio::io_context io_{1};
  FileDescriptor to_link_;
  FileDescriptor from_link_;
  std::unique_ptr<FrameLink> link_;
  std::vector<Frame> frames_;
  int closed_ = 0;
  std::string sent_;
};

const Frame kHello{FrameType::Hello, 3, "hello"};
const Frame kOutput{FrameType::Output, 7, "text"};

TEST_F(FrameLinkTest, DeliversFramesAfterTheMarkAndSignsOfLifeToNobody) {
  begin(true);
  EXPECT_FALSE(link_->greeted());
  write("Welcome to this host\n");
  write(std::string(hosts::kEdgeMark) + encode({FrameType::Alive}));
  ASSERT_TRUE(until([&] { return link_->greeted(); }));
  EXPECT_THAT(frames_, IsEmpty());
  write(encode(kHello) + encode(kOutput));
  ASSERT_TRUE(until([&] { return frames_.size() == 2; }));
  EXPECT_THAT(frames_, ElementsAre(kHello, kOutput));
  EXPECT_EQ(closed_, 0);
}

TEST_F(FrameLinkTest, WhereNoMarkIsAwaitedTheOtherSideIsKnownAtOnce) {
  begin(false);
  EXPECT_TRUE(link_->greeted());
  write(encode(kHello));
  ASSERT_TRUE(until([&] { return !frames_.empty(); }));
  EXPECT_THAT(frames_, ElementsAre(kHello));
}

TEST_F(FrameLinkTest, TellsOnceThatTheOtherSideIsGone) {
  begin(false);
  write(encode(kHello));
  to_link_.reset();
  ASSERT_TRUE(until([&] { return closed_ > 0; }));
  EXPECT_THAT(frames_, ElementsAre(kHello)) << "what came before counts";
  io_.restart();
  io_.poll();
  EXPECT_EQ(closed_, 1);
}

TEST_F(FrameLinkTest, WhoSpeaksSomethingElseIsGone) {
  begin(false);
  write(encode(kHello) + std::string(20, '\xff'));
  ASSERT_TRUE(until([&] { return closed_ == 1; }));
  EXPECT_THAT(frames_, ElementsAre(kHello));
}

TEST_F(FrameLinkTest, WhatIsSentArrivesWholeAndInOrderThoughItIsReadSlowly) {
  begin(false);
  std::string expected = "before";
  link_->send_bytes("before");
  for (std::uint32_t i = 0; i < 20; ++i) {
    const Frame frame{FrameType::Output, i, std::string(100'000, static_cast<char>('a' + i))};
    expected += encode(frame);
    link_->send(frame);
  }
  link_->close_output();
  link_->send(kHello);  // too late
  ASSERT_TRUE(until([&] { return read(); }));
  EXPECT_EQ(sent_, expected);
}

TEST_F(FrameLinkTest, AnIdleOutputIsClosedAtOnceAndReadingGoesOn) {
  begin(false);
  link_->send_bytes("all");
  ASSERT_TRUE(until([&] { return !read() && sent_ == "all"; }));
  io_.restart();
  io_.poll();  // the end of writing
  link_->close_output();
  link_->close_output();
  EXPECT_TRUE(read());
  write(encode(kHello));
  ASSERT_TRUE(until([&] { return !frames_.empty(); }));
  EXPECT_EQ(closed_, 0);
}

TEST_F(FrameLinkTest, WhoReadsNoMoreMayStillSpeak) {
  begin(false);
  ::signal(SIGPIPE, SIG_IGN);
  from_link_.reset();
  link_->send(kOutput);
  link_->send(kOutput);
  write(encode(kHello));
  ASSERT_TRUE(until([&] { return !frames_.empty(); }));
  link_->send(kOutput);
  io_.restart();
  io_.poll();
  EXPECT_EQ(closed_, 0);
  to_link_.reset();
  ASSERT_TRUE(until([&] { return closed_ == 1; }));
}

TEST_F(FrameLinkTest, AfterItsEndNothingIsCalledAndTheLoopRunsDry) {
  begin(false);
  link_->send(Frame{FrameType::Output, 0, std::string(1 << 20, 'x')});
  write(encode(kHello));
  link_->end();
  io_.restart();
  io_.run();  // returns
  EXPECT_THAT(frames_, IsEmpty());
  EXPECT_EQ(closed_, 0);
  while (!read()) {
  }
}

TEST_F(FrameLinkTest, ACallThatEndsTheLinkIsTheLast) {
  begin(false);
  int called = 0;
  Pipe in;
  Pipe out;
  FrameLink* inner = nullptr;
  FrameLink link(io_, std::move(in.read), std::move(out.write), false,
                 {[&](const Frame&) {
                    ++called;
                    inner->end();
                  },
                  [](const std::string&) {}, [&](const std::string&) { ++closed_; }});
  inner = &link;
  link.start();
  const std::string two = encode(kHello) + encode(kHello);
  ASSERT_EQ(::write(in.write.get(), two.data(), two.size()), static_cast<ssize_t>(two.size()));
  ASSERT_TRUE(until([&] { return called > 0; }));
  io_.restart();
  io_.poll();
  EXPECT_EQ(called, 1);
  EXPECT_EQ(closed_, 0);
}

// It would be taken for gone otherwise. One that is not known yet is told nothing.
TEST_F(FrameLinkTest, SaysThatItIsThereEverySoOften) {
  const auto begun = std::chrono::steady_clock::now();
  begin(false);
  Pipe in;
  Pipe out;
  FrameLink unknown(io_, std::move(in.read), std::move(out.write), true,
                    {[](const Frame&) {}, [](const std::string&) {}, [](const std::string&) {}});
  unknown.start();
  ::fcntl(out.read.get(), F_SETFL, O_NONBLOCK);
  const std::string sign = encode({FrameType::Alive});
  ASSERT_TRUE(until([&] { return !read() && sent_.size() >= 2 * sign.size(); }));
  EXPECT_EQ(sent_, sign + sign);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 2 * kAliveInterval);
  EXPECT_EQ(closed_, 0);
  char byte = 0;
  EXPECT_EQ(::read(out.read.get(), &byte, 1), -1) << "nothing was sent";
  unknown.end();
  io_.restart();
  io_.poll();  // what waited for it is told so while it is there
}

}  // namespace
}  // namespace drun::launcher
