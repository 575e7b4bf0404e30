#include "bench/server_process.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace drun::bench {
namespace {

// A child that ends with this process; its standard output is the write end.
pid_t start(FileDescriptor& output, const std::function<void(int)>& body) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "pipe2");
  output.reset(ends[0]);
  FileDescriptor write_end(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    body(write_end.get());
    ::_exit(0);
  }
  return pid;
}

}  // namespace

ServerProcess::ServerProcess(std::string name, store::TcpStoreVersion version,
                             const std::function<void(int)>& serve)
    : name_(std::move(name)), version_(version) {
  FileDescriptor output;
  pid_ = start(output, serve);
  read_endpoint(std::move(output));
}

ServerProcess::ServerProcess(std::string name, store::TcpStoreVersion version,
                             const std::vector<std::string>& argv)
    : name_(std::move(name)), version_(version) {
  std::vector<char*> arguments;
  for (const std::string& argument : argv)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  FileDescriptor output;
  pid_ = start(output, [&](int out) {
    ::dup2(out, STDOUT_FILENO);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  });
  read_endpoint(std::move(output));
}

ServerProcess::~ServerProcess() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void ServerProcess::read_endpoint(FileDescriptor output) {
  std::string line;
  for (char c = 0; ::read(output.get(), &c, 1) == 1 && c != '\n';)
    line.push_back(c);
  const bool only_port = !line.empty() && line.find_first_not_of("0123456789") == line.npos;
  const auto endpoint = parse_endpoint(only_port ? "127.0.0.1:" + line : line, 0);
  if (!endpoint) {
    throw std::runtime_error("the server '" + name_ + "' did not say its endpoint: '" + line + "'");
  }
  endpoint_ = *endpoint;
  // What it prints later has nowhere to go, and must not end it.
  [[maybe_unused]] const int kept = output.release();
}

bool ServerProcess::alive() const {
  return ::waitpid(pid_, nullptr, WNOHANG) == 0;
}

std::uint64_t ServerProcess::cpu_time() const {
  std::uint64_t total = 0;
  const std::filesystem::path tasks = "/proc/" + std::to_string(pid_) + "/task";
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator(tasks, ignored)) {
    std::uint64_t on_cpu = 0;
    std::ifstream(task.path() / "schedstat") >> on_cpu;
    total += on_cpu;
  }
  return total;
}

std::size_t ServerProcess::memory() const {
  std::size_t size = 0;
  std::size_t resident = 0;
  std::ifstream("/proc/" + std::to_string(pid_) + "/statm") >> size >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

void ServerProcess::pin(std::size_t cpu) const {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  const std::filesystem::path tasks = "/proc/" + std::to_string(pid_) + "/task";
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator(tasks, ignored)) {
    ::sched_setaffinity(std::atoi(task.path().filename().c_str()), sizeof set, &set);
  }
}

}  // namespace drun::bench
