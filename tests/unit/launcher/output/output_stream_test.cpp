// What becomes of the bytes of a stream whose lines get a prefix or are folded, however they come.
#include "launcher/output/output_stream.hpp"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <string>

#include <gtest/gtest.h>

#include "launcher/output/output_console.hpp"

namespace drun::launcher {
namespace {

constexpr LineFolder::Time kNow{std::chrono::hours(1)};

std::string taken(BufferChain& chain) {
  std::string text;
  while (!chain.empty()) {
    std::array<iovec, 16> parts;
    const std::size_t before = text.size();
    const std::size_t count = chain.parts(parts, chain.size());
    for (std::size_t i = 0; i < count; ++i)
      text.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
    chain.consume(text.size() - before);
  }
  return text;
}

TEST(SinkTest, WithoutADescriptorItIsGoneAndSaysWhy) {
  const Sink sink(-1);
  EXPECT_EQ(sink.state(), Sink::State::Gone);
  EXPECT_EQ(sink.error(), EBADF);
}

class FoldedStreamTest : public testing::Test {
 protected:
  FoldedStreamTest() {
    int rank = 0;
    for (Stream* stream : {&a_, &b_}) {
      stream->rank = rank;
      stream->console = &console_;
      stream->folding = &folding_;
      folding_.folder.join(rank++);
    }
  }
  // As they are read.
  static void take(Stream& stream, std::string_view bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += 64 * 1024)
      stream.take(bytes.substr(at, 64 * 1024), kNow);
  }
  std::string folded() {
    folding_.flush(kNow + std::chrono::seconds(1));
    return taken(folding_.out.staged);
  }

  BufferPool pool_;
  FileDescriptor null_{::open("/dev/null", O_WRONLY | O_CLOEXEC)};
  Console console_{null_.get()};
  Folding folding_{pool_};
  Stream a_{pool_, 0};
  Stream b_{pool_, 0};
};

// An empty turn would end the open line of another rank.
TEST_F(FoldedStreamTest, ALineThatIsFoldedBeforeItsTurnGivesItUp) {
  for (Stream* stream : {&a_, &b_})
    console_.join(*stream);
  take(a_, "hello");
  console_.offer(a_, kNow);
  ASSERT_TRUE(console_.deadline(kNow));
  take(a_, "\n");
  console_.offer(a_, kNow);
  EXPECT_FALSE(console_.deadline(kNow));
  for (Stream* stream : {&a_, &b_})
    console_.leave(*stream);
}

TEST_F(FoldedStreamTest, ALongLineIsFoldedWhole) {
  const std::string same(200'000, 's');
  const std::string a(100'000, 'a');
  const std::string b(100'000, 'b');
  take(a_, same + '\n' + a + '\n');
  take(b_, same + '\n' + b + '\n');
  EXPECT_TRUE(folded() == "[ranks 0-1] " + same + "\n[rank 0] " + a + "\n[rank 1] " + b + '\n');
  EXPECT_TRUE(a_.staged.empty());
}

TEST_F(FoldedStreamTest, AnEndWithoutANewlineIsFoldedWholeToo) {
  const std::string same(200'000, 's');
  for (Stream* stream : {&a_, &b_}) {
    take(*stream, same);
    stream->finish(kNow);
  }
  EXPECT_TRUE(folded() == "[ranks 0-1] " + same + '\n');
}

// Its rank shows it, and goes on with it until its end.
TEST_F(FoldedStreamTest, ALineThatIsTooLongIsShownInPiecesWithOnePrefix) {
  const std::string line(kLongestFolded, 'x');
  take(a_, "before\n" + line);
  EXPECT_TRUE(a_.is_full()) << "no more is read";
  EXPECT_EQ(folded(), "[rank 0] before\n");
  EXPECT_TRUE(a_.staged.empty()) << "it waits for its turn";
  a_.stage_unfinished();
  EXPECT_FALSE(a_.is_full());
  EXPECT_FALSE(a_.line_state.too_long) << "others that cut in do so on a line of their own";
  take(a_, line + "\nafter\n");
  EXPECT_TRUE(taken(a_.staged) == "[rank 0] " + line + line + '\n');
  EXPECT_FALSE(a_.line_state.open);
  EXPECT_EQ(folded(), "[rank 0] after\n");
}

TEST(PrefixedStreamTest, TheEndOfABarThatOthersHaveWrittenOverComesWithTheBar) {
  BufferPool pool;
  const FileDescriptor null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  Console console(null.get());
  Stream stream(pool, 0);
  stream.console = &console;
  stream.prefix = "0: ";
  const auto shown = [&](std::string_view bytes, bool cut) {
    stream.was_cut = cut;
    stream.take(bytes, kNow);
    if (stream.staged.empty()) stream.stage_unfinished();
    return taken(stream.staged);
  };
  EXPECT_EQ(shown("\r 50%", false), "\r0:  50%");
  EXPECT_EQ(shown("\r100%", true), "\r0: 100%");
  EXPECT_EQ(shown("\nnext\n", true), "0: 100%\n0: next\n");
  EXPECT_EQ(shown("\r100%", false), "\r0: 100%");
  EXPECT_EQ(shown("\n", false), "\n") << "nobody has";
  EXPECT_EQ(shown("no bar", false), "0: no bar");
  EXPECT_EQ(shown("\n", true), "0: \n") << "it is seen above";
}

}  // namespace
}  // namespace drun::launcher
