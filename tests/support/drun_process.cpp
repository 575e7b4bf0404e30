#include "support/drun_process.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "base/pidfd.hpp"
#include "support/places.hpp"

namespace drun::test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

int remaining(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

// What would steer drun or a worker, and must come from the test alone. Which mutant is switched
// on, and where it leaves a sign, is for all programs.
bool steers_drun(const std::string& name) {
  if (name.starts_with("DRUN_TEST_MUTANT")) return false;
  static const std::array<const char*, 17> kPrefixes = {
      "PET_",       "TORCHELASTIC_", "TORCH_", "SLURM_", "DRUN_", "MASTER_",
      "LOCAL_RANK", "GROUP_RANK",    "OMP_",   "OMPI_",  "PMI_",  "PMIX_",
      "MPI_LOCAL",  "LSB_",          "PBS_",   "FLUX_",  "LWS_"};
  static const std::array<const char*, 5> kNames = {"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
                                                    "PYTHON_EXEC", "LOGLEVEL"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](const char* prefix) { return name.starts_with(prefix); }) ||
         std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::vector<std::string> make_environment(const std::vector<std::string>& changes,
                                          const std::string& mark) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    if (!steers_drun(name)) variables[name] = text;
  }
  for (const auto& change : changes) {
    const auto equals = change.find('=');
    if (equals == std::string::npos) {
      variables.erase(change);
    } else {
      variables[change.substr(0, equals)] = change;
    }
  }
  variables["DRUN_TEST_MARK"] = "DRUN_TEST_MARK=" + mark;
  std::vector<std::string> result;
  result.reserve(variables.size());
  for (auto& [name, text] : variables)
    result.push_back(std::move(text));
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (auto& text : texts)
    result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::string new_mark() {
  static std::mt19937_64 random{std::random_device{}()};
  return std::to_string(::getpid()) + "-" + std::to_string(random());
}

// Reads all that is there now; closes at the end of the file.
void drain(FileDescriptor& from, std::string& into) {
  std::array<char, 65536> buffer{};
  while (from) {
    const auto n = ::read(from.get(), buffer.data(), buffer.size());
    if (n > 0) {
      into.append(buffer.data(), static_cast<std::size_t>(n));
    } else if (n == 0) {
      from.reset();
    } else if (errno != EINTR) {
      if (errno != EAGAIN) from.reset();
      return;
    }
  }
}

// A process in the middle of an exec shows no environment for a moment, and a zombie or a kernel
// thread never has one: those two have no executable either.
std::string environment_of(const fs::path& process) {
  std::string variables;
  (void)eventually(
      [&] {
        std::error_code gone;
        variables = read_file(process / "environ");
        return !variables.empty() || fs::read_symlink(process / "exe", gone).empty();
      },
      milliseconds(200));
  return variables;
}

bool has_torch(const std::string& python) {
  const std::string check =
      "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)";
  Launch launch;
  launch.argv = {"/usr/bin/env", python, "-c", check};
  DrunProcess process(launch);
  return process.finish().code == 0;
}

}  // namespace

TempDir::TempDir() {
  std::string name = (fs::temp_directory_path() / "drun-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) fail("mkdtemp " + name);
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TempDir::write(const std::string& name, const std::string& content,
                           bool executable) const {
  const auto file = path_ / name;
  std::ofstream(file, std::ios::binary) << content;
  if (executable) fs::permissions(file, fs::perms::owner_all, fs::perm_options::add);
  return file.string();
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

std::vector<std::string> lines_but_waiting(const std::string& err) {
  auto lines = split_lines(err);
  std::erase_if(lines, [](const std::string& line) { return line.starts_with("drun: waiting "); });
  return lines;
}

ReservedPort::ReservedPort() : socket_(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (!socket_) fail("socket");
  const int off = 0;
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket_.get(), generic, length) != 0) fail("bind");
  if (::getsockname(socket_.get(), generic, &length) != 0) fail("getsockname");
  number_ = ntohs(address.sin6_port);
}

DrunProcess::DrunProcess(std::vector<std::string> arguments, Launch launch) : mark_(new_mark()) {
  arguments.insert(arguments.begin(), drun_path());
  launch.argv = std::move(arguments);
  start(launch);
}

DrunProcess::DrunProcess(Launch launch) : mark_(new_mark()) {
  start(launch);
}

DrunProcess::~DrunProcess() {
  if (running_) ::kill(pid_, SIGKILL);
  // A guardian may still be ending its workers: kill what is left until nothing is.
  (void)eventually([this] {
    const auto left = marked();
    for (const pid_t pid : left)
      ::kill(pid, SIGKILL);
    return left.empty();
  });
  if (running_) ::waitpid(pid_, nullptr, 0);
}

void DrunProcess::start(const Launch& launch) {
  int out[2];
  int err[2];
  int report[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0 ||
      ::pipe2(report, O_CLOEXEC) != 0) {
    fail("pipe2");
  }
  out_pipe_.reset(out[0]);
  err_pipe_.reset(err[0]);
  FileDescriptor out_end(out[1]);
  FileDescriptor err_end(err[1]);
  FileDescriptor report_read(report[0]);
  FileDescriptor report_write(report[1]);
  for (const int fd : {out[0], err[0]})
    ::fcntl(fd, F_SETFL, O_NONBLOCK);

  auto argv_texts = launch.argv;
  auto env_texts = make_environment(launch.environment, mark_);
  const auto argv = pointers(argv_texts);
  const auto envp = pointers(env_texts);
  const std::string directory = launch.directory.string();

  pid_ = ::fork();
  if (pid_ < 0) fail("fork");
  if (pid_ == 0) {
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (launch.own_group) ::setpgid(0, 0);
    const bool ready = (directory.empty() || ::chdir(directory.c_str()) == 0) &&
                       ::dup2(null, 0) == 0 && ::dup2(out[1], 1) == 1 && ::dup2(err[1], 2) == 2;
    if (ready) ::execve(argv[0], argv.data(), envp.data());
    const int error = errno;
    (void)!::write(report[1], &error, sizeof error);
    ::_exit(127);
  }
  running_ = true;
  pidfd_ = open_pidfd(pid_);
  report_write.reset();
  int error = 0;
  if (::read(report_read.get(), &error, sizeof error) > 0) {
    errno = error;
    fail("start " + launch.argv[0]);
  }
}

// Collects output until `done`, the end of the program or the deadline; says whether `done` holds.
bool DrunProcess::pump(const std::function<bool()>& done, milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  for (;;) {
    drain(out_pipe_, out_);
    drain(err_pipe_, err_);
    if (done()) return true;
    if (!running_ || Clock::now() >= deadline) return false;
    std::array<pollfd, 3> set = {pollfd{pidfd_.get(), POLLIN, 0},
                                 pollfd{out_pipe_.get(), POLLIN, 0},
                                 pollfd{err_pipe_.get(), POLLIN, 0}};
    if (::poll(set.data(), set.size(), remaining(deadline)) < 0 && errno != EINTR) fail("poll");
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      running_ = false;
      code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
  }
}

void DrunProcess::signal(int number) const {
  if (running_) ::kill(pid_, number);
}

bool DrunProcess::wait_for_out(const std::string& text, milliseconds patience) {
  return pump([&] { return out_.find(text) != std::string::npos; }, patience);
}

bool DrunProcess::wait_for_err(const std::string& text, milliseconds patience) {
  return pump([&] { return err_.find(text) != std::string::npos; }, patience);
}

bool DrunProcess::wait(milliseconds patience) {
  return pump([this] { return !running_; }, patience);
}

Finished DrunProcess::finish(milliseconds patience) {
  Finished result;
  if (wait(patience)) {
    result.code = code_;
  } else {
    ::kill(pid_, SIGKILL);
    (void)wait();
  }
  result.out = out_;
  result.err = err_;
  result.survivors = survivors();
  return result;
}

// With `variable`: only those that have this entry too.
std::vector<pid_t> DrunProcess::marked(const std::string& variable) const {
  std::vector<pid_t> result;
  std::error_code ignored;
  for (const auto& process : fs::directory_iterator("/proc", ignored)) {
    const std::string name = process.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto pid = static_cast<pid_t>(std::stol(name));
    if (pid == pid_ && running_) continue;
    const std::string variables = '\0' + environment_of(process.path());
    const auto has = [&](const std::string& entry) {
      return variables.find('\0' + entry + '\0') != std::string::npos;
    };
    if (has("DRUN_TEST_MARK=" + mark_) && (variable.empty() || has(variable)))
      result.push_back(pid);
  }
  return result;
}

std::vector<pid_t> DrunProcess::pids_with(const std::string& variable) const {
  return marked(variable);
}

pid_t DrunProcess::wait_for_pid_with(const std::string& variable) const {
  std::vector<pid_t> found;
  const bool alone = eventually([&] {
    found = pids_with(variable);
    return found.size() == 1;
  });
  return alone ? found.front() : -1;
}

std::vector<std::string> DrunProcess::survivors() const {
  std::vector<std::string> result;
  for (const pid_t pid : marked()) {
    std::string command = read_file("/proc/" + std::to_string(pid) + "/cmdline");
    std::replace(command.begin(), command.end(), '\0', ' ');
    if (!command.empty()) result.push_back(std::to_string(pid) + " " + command);
  }
  return result;
}

bool DrunProcess::survivors_gone(milliseconds patience) const {
  const auto deadline = Clock::now() + patience;
  for (;;) {
    const auto left = marked();
    if (left.empty()) return true;
    const FileDescriptor pidfd = open_pidfd(left.front());
    pollfd one{pidfd.get(), POLLIN, 0};
    if (pidfd) (void)::poll(&one, 1, remaining(deadline));
    if (Clock::now() >= deadline) return marked().empty();
  }
}

Finished run_drun(std::vector<std::string> arguments, Launch launch, milliseconds patience) {
  DrunProcess process(std::move(arguments), std::move(launch));
  return process.finish(patience);
}

std::string drun_path() {
  const char* chosen = std::getenv("DRUN_UNDER_TEST");
  return chosen != nullptr ? chosen : places::program("drun");
}

std::string python_with_torch() {
  static const std::string found = [] {
    const char* chosen = std::getenv("PYTHON_EXEC");
    for (const std::string candidate :
         {chosen != nullptr ? chosen : "", "python3", "/usr/bin/python3"}) {
      if (!candidate.empty() && has_torch(candidate)) return candidate;
    }
    return std::string();
  }();
  return found;
}

}  // namespace drun::test
