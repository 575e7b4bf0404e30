// The stacks of Python by its memory: made up, and of an interpreter that is here.
#include "launcher/look/python_memory.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/patience.hpp"

namespace drun::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

// What Python 3.14 has made of a function with a comprehension, a call over three lines and
// "finally", and what its co_lines() says of it.
TEST(PythonMemoryTest, TheLineOfAnInstructionIsFoundInTheTableOfLocations) {
  const std::string locations = bytes_of(
      "8000d808098f0389038f0589058041df0708e11617f303010d19d916179011f303000e0fd91617f00300090af0"
      "00010d19f00606050ddc0f109011e01112f305021014f40800090ad80a0bf50301090df9f211010d19f8f41000"
      "090ad80a0bf50301090dfa");
  const std::map<std::uint64_t, std::int64_t> lines = {
      {0, 2},   {1, 3},   {22, 3}, {23, 4},  {30, 4},  {31, 6}, {33, 5},
      {37, 6},  {40, 5},  {48, 8}, {49, 9},  {55, 11}, {56, 9}, {60, 13},
      {65, 14}, {66, 13}, {74, 5}, {78, 13}, {83, 14}, {84, 13}};
  for (const auto& [instruction, line] : lines)
    EXPECT_EQ(line_of(locations, 2, instruction), line) << instruction;
  EXPECT_EQ(line_of("", 7, 3), 7);
  for (std::size_t size = 0; size < locations.size(); ++size)  // cut anywhere
    (void)line_of(std::string_view(locations).substr(0, size), 2, 1'000);
}

// The memory of an interpreter with one thread in one function, as it would be if each member that
// is needed were a word of its structure.
class MadeUpPython {
 public:
  static constexpr std::uint64_t kTable = 0x1000;

  // `words`: where in the table the offsets stand, in the order in which members are named here.
  MadeUpPython(std::uint64_t version, const std::vector<std::size_t>& words) {
    std::array<std::uint64_t, 96> table{};
    std::memcpy(table.data(), "xdebugpy", 8);
    table[1] = version << 16;
    for (std::size_t i = 0; i < words.size(); ++i)
      table[words[i]] = member(0, i);
    put(kTable, std::string(reinterpret_cast<const char*>(table.data()), sizeof table));
    set(kTable, 0, 0x10000);   // the first interpreter
    set(0x10000, 1, 0);        // the next one
    set(0x10000, 2, 0x20000);  // its threads
    set(0x20000, 3, 0);
    set(0x20000, 4, 0x30000);  // the frame
    set(0x20000, 5, 4711);
    set(0x30000, 6, 0x31000);  // what has called it
    set(0x30000, 7, 0x40001);  // its code, with a bit
    set(0x30000, 8, member(0x40000, 13) + 2 * 1);
    set(0x31000, 6, 0);
    set(0x31000, 7, 0x50000);  // no code: between C and Python
    set(0x40000, 9, 0x60000);
    set(0x40000, 10, 0x61000);
    set(0x40000, 11, 0x62000);
    put(member(0x40000, 12), std::string("\x28\0\0\0", 4));  // line 40
    set(0x40000, 14, 0x70000);
    set(0x50000, 14, 0x71000);
    set(0x70000, 15, 0x72000);
    set(0x71000, 15, 0x73000);
    put(0x72000, std::string("code\0", 5));
    put(0x73000, std::string("NoneType\0", 9));
    text(0x60000, "/srv/train.py");
    text(0x61000, "step");
    set(0x62000, 16, 4);
    put(member(0x62000, 17), std::string("\x80\x00\xd8\x04", 4));  // then one line more
  }

  void set(std::uint64_t object, std::size_t number, std::uint64_t value) {
    put(member(object, number), std::string(reinterpret_cast<const char*>(&value), sizeof value));
  }
  static std::uint64_t member(std::uint64_t object, std::size_t number) {
    return object + 0x400 + 8 * (number + 1);
  }
  void put(std::uint64_t address, const std::string& bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
      memory_[address + i] = bytes[i];
  }
  [[nodiscard]] ReadMemory reader() const {
    return [this](std::uint64_t address, void* to, std::size_t size) {
      for (std::size_t i = 0; i < size; ++i) {
        const auto byte = memory_.find(address + i);
        if (byte == memory_.end()) return false;
        static_cast<char*>(to)[i] = byte->second;
      }
      return true;
    };
  }

 private:
  void text(std::uint64_t object, const std::string& ascii) {
    put(member(object, 18), std::string("\x64\0\0\0", 4));
    set(object, 19, ascii.size());
    put(member(object, 20), ascii);
  }

  std::map<std::uint64_t, char> memory_;
};

// interpreters_head, next, threads_head; thread's next, current_frame, native_thread_id; frame's
// previous, executable, instr_ptr; code's filename, name, linetable, firstlineno, co_code_adaptive;
// ob_type, tp_name; bytes' ob_size, ob_sval; unicode's state, length, asciiobject_size.
const std::map<std::uint64_t, std::vector<std::size_t>> kTables = {
    {0x030d, {5, 8, 9, 21, 23, 25, 29, 30, 31, 35, 36, 38, 39, 43, 45, 47, 65, 66, 68, 69, 70}},
    {0x030e, {5, 8, 9, 24, 26, 28, 32, 33, 34, 40, 41, 43, 44, 48, 51, 53, 75, 76, 78, 79, 80}}};

TEST(PythonMemoryTest, FramesAreReadAsTheTableOfEachVersionSays) {
  for (const auto& [version, words] : kTables) {
    const MadeUpPython python(version, words);
    const auto stacks = python_stacks_in(python.reader(), MadeUpPython::kTable);
    ASSERT_TRUE(stacks) << stacks.error().what();
    ASSERT_TRUE(stacks->contains(4711));
    EXPECT_THAT(stacks->at(4711), ElementsAre("step (train.py:41)"));
  }
}

TEST(PythonMemoryTest, WhatIsBrokenHasAnEnd) {
  const auto& [version, words] = *kTables.begin();
  MadeUpPython python(version, words);
  python.set(0x20000, 3, 0x20000);  // threads in a circle
  python.set(0x31000, 6, 0x30000);  // frames, too
  python.set(0x62000, 16, ~std::uint64_t{0});
  python.set(0x60000, 19, ~std::uint64_t{0});
  const auto stacks = python_stacks_in(python.reader(), MadeUpPython::kTable);
  ASSERT_TRUE(stacks);
  EXPECT_THAT(stacks->at(4711).front(), "step (?:40)");
  EXPECT_LE(stacks->at(4711).size(), 400U);
}

TEST(PythonMemoryTest, OtherVersionsAreRefusedWithTheReason) {
  const auto& words = kTables.begin()->second;
  const auto why = [](const MadeUpPython& python) {
    const auto stacks = python_stacks_in(python.reader(), MadeUpPython::kTable);
    return stacks ? std::string() : stacks.error().what();
  };
  EXPECT_THAT(why(MadeUpPython(0x0310, words)), HasSubstr("its version is not known"));
  MadeUpPython threaded(0x030d, words);
  threaded.put(MadeUpPython::kTable + 16, "\x01");
  EXPECT_THAT(why(threaded), HasSubstr("it has no GIL"));
  MadeUpPython old(0x030d, words);
  old.put(MadeUpPython::kTable, "x");
  EXPECT_THAT(why(old), "");
  old.put(MadeUpPython::kTable, "y");
  EXPECT_THAT(why(old), HasSubstr("it is older than Python 3.13"));
  EXPECT_FALSE(python_stacks_in([](auto, auto*, auto) { return false; }, 0x1000));
}

// Of a version that it does not know, the reason.
TEST(PythonMemoryTest, AnInterpreterOfThisMachineShowsItsStacksOrWhyNot) {
  constexpr const char* kProgram =
      "import time\n"
      "def hang_here(n):\n"
      "  if n:\n"
      "    hang_here(n - 1)\n"
      "  time.sleep(1000)\n"
      "hang_here(1)\n";
  for (const char* name : {"python3", "python3.13", "python3.14"}) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::execlp(name, name, "-c", kProgram, nullptr);
      ::_exit(127);
    }
    Result<PythonStacks> stacks = PythonStacks();
    const bool known = test::eventually([&] {
      if (::waitpid(child, nullptr, WNOHANG) == child) return true;  // it is not here
      if (!is_python(child)) return false;
      stacks = read_python_stacks(child);
      return !stacks || (stacks->contains(child) && stacks->at(child).size() == 3);
    });
    EXPECT_TRUE(known) << name;
    if (!stacks) {
      EXPECT_THAT(stacks.error().what(), testing::AnyOf(HasSubstr("older than Python 3.13"),
                                                        HasSubstr("version is not known"),
                                                        HasSubstr("no table of its structures")))
          << name;
    } else if (stacks->contains(child)) {
      EXPECT_THAT(stacks->at(child), ElementsAre("hang_here (<string>:5)", "hang_here (<string>:4)",
                                                 "<module> (<string>:6)"))
          << name;
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
}

}  // namespace
}  // namespace drun::launcher
