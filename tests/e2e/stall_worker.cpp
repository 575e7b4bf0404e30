// Programs that hang, and programs that are slow but alive: for --hang-timeout.
//   stall_worker KIND [SECONDS]   a slow one ends with 0 after so long; one that hangs never ends
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kPause{300};

Clock::time_point end_time;

bool is_over() {
  return Clock::now() >= end_time;
}

void compute_for(Clock::duration time) {
  const auto end = Clock::now() + time;
  while (Clock::now() < end) {
  }
}

// Does something, with pauses, until the time is over.
void slowly(const std::function<void()>& something) {
  while (!is_over()) {
    something();
    std::this_thread::sleep_for(kPause);
  }
}

// Both ends of a connection over loopback.
std::array<int, 2> tcp_pair() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener, any, size) != 0 || ::listen(listener, 1) != 0 ||
      ::getsockname(listener, any, &size) != 0)
    std::exit(70);
  const int near = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::connect(near, any, size) != 0) std::exit(70);
  return {near, ::accept(listener, nullptr, nullptr)};
}

void receive_for_ever() {
  char byte = 0;
  const auto ends = tcp_pair();
  (void)!::recv(ends[1], &byte, 1, 0);
}

void wait_for_a_lock() {
  std::promise<void> never;
  never.get_future().wait();
}

// As a lock that a thread takes a second time: it waits as the others do that wait for it.
void take_a_lock_twice() {
  std::mutex mutex;
  mutex.lock();
  mutex.lock();
}

// As gloo's loop and NCCL's watchdog do beside a program that hangs.
void wait_beside_watchdogs() {
  std::vector<std::thread> watchdogs;
  for (const int pause_ms : {10, 100, 1'000}) {
    watchdogs.emplace_back([pause_ms] {
      for (;;)
        std::this_thread::sleep_for(milliseconds(pause_ms));
    });
  }
  wait_for_a_lock();
}

void in_child(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
}

void read_a_pipe() {
  int ends[2];
  char byte = 0;
  if (::pipe(ends) == 0) (void)!::read(ends[0], &byte, 1);
}

// As a data loader of Python that brings nothing, beside a connection to others.
void wait_for_a_loader() {
  const auto others = tcp_pair();
  int ends[2];
  if (::pipe(ends) != 0) std::exit(70);
  if (::fork() == 0) {
    ::close(ends[0]);
    ::pause();
  }
  ::close(ends[1]);
  pollfd entry{ends[0], POLLIN, 0};
  (void)::poll(&entry, 1, -1);
  ::close(others[0]);
}

void send_bytes() {
  const auto ends = tcp_pair();
  std::thread receiver([&] {
    char byte = 0;
    while (::recv(ends[1], &byte, 1, 0) == 1) {
    }
  });
  slowly([&] { (void)!::send(ends[0], "x", 1, 0); });
  ::shutdown(ends[0], SHUT_RDWR);
  receiver.join();
}

void write_bytes() {
  const int file = ::open("/dev/null", O_WRONLY);
  slowly([&] { (void)!::write(file, "x", 1); });
}

void touch_memory() {
  slowly([] {
    constexpr std::size_t kPages = 200;
    const std::size_t size = kPages * 4'096;
    void* const at =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) std::exit(70);
    for (std::size_t i = 0; i < size; i += 4'096)
      static_cast<volatile char*>(at)[i] = 1;
    ::munmap(at, size);
  });
}

// What NCCL's RAS service answers: the last rank has begun `lag` collectives less than the others,
// and all some more with each question if they make progress.
std::string ras_answer(int size, int lag, bool gets_on, int questions) {
  const auto rank = [&](int number, pid_t pid, int begun) {
    return R"({"rank": )" + std::to_string(number) + R"(, "host": "127.0.0.1", "pid": )" +
           std::to_string(pid) + R"(, "status": {"abort_flag": false}, "collective_counts": )" +
           R"({"AllReduce": )" + std::to_string(begun) + "}}";
  };
  const int begun = 100 + (gets_on ? questions : 0);
  std::string ranks;
  for (int other = 0; other < size - 1; ++other)
    ranks += rank(other, 1, begun) + ", ";
  return "SERVER PROTOCOL 2\nOK\nOK\n"
         R"({"communicators": [{"size": )" +
         std::to_string(size) + R"(, "ranks": [)" + ranks +
         rank(size - 1, ::getpid(), begun - lag) + "]}]}\n";
}

// A rank of several that spins until others come to its collective, as NCCL does. The last serves.
void spin_in_collective(int lag, bool gets_on) {
  const int rank = std::atoi(std::getenv("RANK"));
  const int size = std::atoi(std::getenv("WORLD_SIZE"));
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::thread service([&] {
    if (rank != size - 1) return;
    const std::string place = std::getenv("NCCL_RAS_ADDR");
    const int on = 1;
    ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int port = std::atoi(place.substr(place.find(':') + 1).c_str());
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener, 1) != 0)
      std::exit(70);
    for (int questions = 0;; ++questions) {
      const int client = ::accept(listener, nullptr, nullptr);
      if (client < 0) return;
      std::string request;
      std::array<char, 256> piece{};
      while (request.find("STATUS\n") == request.npos) {
        const auto n = ::recv(client, piece.data(), piece.size(), 0);
        if (n <= 0) break;
        request.append(piece.data(), static_cast<std::size_t>(n));
      }
      const std::string answer = ras_answer(size, lag, gets_on, questions);
      (void)!::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
      ::close(client);
    }
  });
  compute_for(end_time - Clock::now());
  ::shutdown(listener, SHUT_RDWR);
  service.join();
}

// As PyTorch with its flight recorder on: a thread looks at a pipe, and writes a file when
// something came.
void wait_beside_a_recorder() {
  const std::string rank = std::getenv("RANK");
  const std::string pipe = std::getenv("TORCH_NCCL_DEBUG_INFO_PIPE_FILE") + rank + ".pipe";
  if (::mkfifo(pipe.c_str(), 0600) != 0) std::exit(70);
  std::thread recorder([&] {
    const int in = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
    char byte = 0;
    for (;;) {
      while (::read(in, &byte, 1) != 1)
        std::this_thread::sleep_for(milliseconds(100));
      std::ofstream(std::getenv("TORCH_NCCL_DEBUG_INFO_TEMP_FILE") + rank) << "trace of " << rank;
    }
  });
  wait_for_a_lock();
}

const std::map<std::string, std::function<void()>>& kinds() {
  static const std::map<std::string, std::function<void()>> kKinds = {
      {"pause", [] { ::pause(); }},
      {"lock", wait_for_a_lock},
      {"lock-twice", take_a_lock_twice},
      {"pipe", read_a_pipe},
      {"recv", receive_for_ever},
      {"watchdogs", wait_beside_watchdogs},
      {"stopped", [] { ::raise(SIGSTOP); }},
      {"without-main",
       [] {
         std::thread(receive_for_ever).detach();
         ::syscall(SYS_exit, 0);  // this thread alone
       }},
      {"loader", wait_for_a_loader},
      {"child", [] { in_child([] { ::pause(); }); }},
      {"sleeps", [] { std::this_thread::sleep_until(end_time); }},
      {"computes", [] { compute_for(end_time - Clock::now()); }},
      {"child-computes", [] { in_child([] { compute_for(end_time - Clock::now()); }); }},
      {"computes-now-and-then", [] { slowly([] { compute_for(milliseconds(20)); }); }},
      {"writes", write_bytes},
      {"sends", send_bytes},
      {"touches-memory", touch_memory},
      {"collective-stuck", [] { spin_in_collective(1, false); }},
      {"collective-even", [] { spin_in_collective(0, false); }},
      {"collective-goes-on", [] { spin_in_collective(1, true); }},
      {"recorder", wait_beside_a_recorder},
      {"starts-children", [] { slowly([] { in_child([] {}); }); }},
      {"starts-threads", [] { slowly([] { std::thread([] {}).join(); }); }},
  };
  return kKinds;
}

}  // namespace

int main(int argc, char** argv) {
  const auto kind = kinds().find(argc > 1 ? argv[1] : "");
  if (kind == kinds().end()) return 64;
  end_time = Clock::now() + std::chrono::seconds(argc > 2 ? std::atoi(argv[2]) : 0);
  kind->second();
  return 0;
}
