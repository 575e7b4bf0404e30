#include "launcher/look/python_stacks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drun::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// As py-spy 0.4 writes it.
constexpr std::string_view kPySpy = R"([
  {"pid": 12, "thread_id": 140, "thread_name": "MainThread", "os_thread_id": 12, "active": true, "owns_gil": false,
   "frames": [
     {"name": "recv", "filename": "/usr/lib/comm.py", "module": null, "short_filename": "comm.py", "line": 7, "locals": null},
     {"name": "<module>", "filename": "train.py", "module": null, "short_filename": "train.py", "line": 41, "locals": null}],
   "process_info": null},
  {"pid": 12, "thread_id": 141, "thread_name": null, "os_thread_id": null, "active": false, "owns_gil": false, "frames": []}
])";

TEST(PythonStacksTest, ReadsPySpy) {
  EXPECT_THAT(stacks_of_py_spy(kPySpy),
              ElementsAre(Pair(12, ElementsAre("recv (comm.py:7)", "<module> (train.py:41)"))));
  for (const char* other : {"", "{}", "[7]", R"([{"os_thread_id": 12}])"})
    for (const auto& [thread, frames] : stacks_of_py_spy(other))
      EXPECT_THAT(frames, IsEmpty()) << other;
}

TEST(PythonStacksTest, ReadsPystack) {
  constexpr std::string_view kText =
      "Traceback for thread 784 (python3.11) [Has the GIL] (most recent call last):\n"
      "    (Python) File \"/x/train.py\", line 41, in <module>\n"
      "        step()\n"
      "    (Python) File \"/x/comm.py\", line 7, in recv\n"
      "        sock.recv(1)\n"
      "\n";
  EXPECT_THAT(stacks_of_pystack(kText),
              ElementsAre(Pair(784, ElementsAre("recv (comm.py:7)", "<module> (train.py:41)"))));
  EXPECT_THAT(stacks_of_pystack("    (Python) File \"a\", line 1, in b\n"), IsEmpty());
}

TEST(PythonStacksTest, PythonStandsForItsInterpreter) {
  const std::vector<std::string> native{"read (libc.so.6)", "sock_recv (_socket.so)",
                                        "python3.11+0x17", "_PyEval_EvalFrameDefault (python3.11)",
                                        "main (python3.11)"};
  const std::vector<std::string> python{"recv (comm.py:7)", "<module> (train.py:41)"};
  EXPECT_THAT(mixed(native, python), ElementsAre("read (libc.so.6)", "sock_recv (_socket.so)",
                                                 "recv (comm.py:7)", "<module> (train.py:41)"));
  EXPECT_EQ(mixed(native, {}), native);
  EXPECT_EQ(mixed({}, python), python);
  EXPECT_EQ(mixed({"read (libc.so.6)", "main (other)"}, python), python);
}

TEST(PythonStacksTest, FindsAnInterpreterAmongTheFilesOfAProcess) {
  EXPECT_TRUE(names_python("5-6 r-xp 0 fe:00 1 /usr/bin/python3.11\n"));
  EXPECT_TRUE(names_python("5-6 r-xp 0 fe:00 1 /opt/lib/libpython3.12.so.1.0\n"));
  EXPECT_FALSE(names_python("5-6 r-xp 0 fe:00 1 /usr/lib/python3/libfoo.so\n5-6 rw-p 0 00:00 0\n"));
}

}  // namespace
}  // namespace drun::launcher
