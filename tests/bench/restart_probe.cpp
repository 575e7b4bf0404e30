#include "bench/restart_probe.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <stdexcept>

#include "base/file_descriptor.hpp"

namespace drun::bench {
namespace {

constexpr char kWorkerFlag[] = "--restart-worker";
constexpr int kPatienceMs = 60'000;

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
}

// What a worker writes as its first act; short enough to be written in one piece.
struct Arrival {
  std::int64_t at_ns = 0;
  pid_t pid = 0;
  int attempt = 0;
  int local_rank = 0;
};

struct TemporaryFifo {
  TemporaryFifo() {
    char folder_template[] = "/tmp/launch_bench.XXXXXX";
    if (::mkdtemp(folder_template) == nullptr) throw std::runtime_error("mkdtemp failed");
    folder = folder_template;
    path = folder + "/arrivals";
    if (::mkfifo(path.c_str(), 0600) != 0) throw std::runtime_error("mkfifo failed");
    // Read and write, so that it never ends while no worker has it open.
    descriptor.reset(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!descriptor) throw std::runtime_error("cannot open the FIFO");
  }
  TemporaryFifo(const TemporaryFifo&) = delete;
  TemporaryFifo& operator=(const TemporaryFifo&) = delete;
  ~TemporaryFifo() {
    ::unlink(path.c_str());
    ::rmdir(folder.c_str());
  }

  [[nodiscard]] Arrival next() const {
    pollfd entry{descriptor.get(), POLLIN, 0};
    Arrival arrival;
    if (::poll(&entry, 1, kPatienceMs) != 1 ||
        ::read(descriptor.get(), &arrival, sizeof arrival) != sizeof arrival)
      throw std::runtime_error("a worker did not come");
    return arrival;
  }

  std::string folder;
  std::string path;
  FileDescriptor descriptor;
};

pid_t start(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const auto& argument : command)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int stream = 0; null >= 0 && stream < 3; ++stream)
      ::dup2(null, stream);  // that a worker was killed is no news
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  if (pid < 0) throw std::runtime_error("fork failed");
  return pid;
}

}  // namespace

double restart_milliseconds(std::vector<std::string> launcher, int workers) {
  const TemporaryFifo fifo;
  launcher.insert(launcher.end(), {kWorkerFlag, fifo.path});
  const pid_t pid = start(launcher);
  try {
    Arrival victim;
    for (int come = 0; come < workers; ++come)
      victim = fifo.next();
    // At any phase of a launcher that looks at its workers now and then.
    std::random_device random;
    ::poll(nullptr, 0, 200 + static_cast<int>(random() % 100));
    const auto before = now_ns();
    ::kill(victim.pid, SIGKILL);
    for (;;) {
      const auto successor = fifo.next();
      if (successor.attempt == 0 || successor.local_rank != victim.local_rank) continue;
      ::waitpid(pid, nullptr, 0);
      return 1e-6 * static_cast<double>(successor.at_ns - before);
    }
  } catch (...) {
    ::kill(pid, SIGTERM);
    ::waitpid(pid, nullptr, 0);
    throw;
  }
}

bool is_restart_worker(int argc, char** argv) {
  return argc == 3 && std::strcmp(argv[1], kWorkerFlag) == 0;
}

int run_restart_worker(char** argv) {
  const auto number = [](const char* name) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::atoi(text) : 0;
  };
  Arrival arrival;
  arrival.at_ns = now_ns();
  arrival.pid = ::getpid();
  arrival.attempt = number("TORCHELASTIC_RESTART_COUNT");
  arrival.local_rank = number("LOCAL_RANK");
  const FileDescriptor fifo(::open(argv[2], O_WRONLY | O_CLOEXEC));
  if (!fifo || ::write(fifo.get(), &arrival, sizeof arrival) != sizeof arrival) return 1;
  while (arrival.attempt == 0)
    ::pause();
  return 0;
}

}  // namespace drun::bench
