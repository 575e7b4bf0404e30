#include "support/etcd_cluster.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <nlohmann/json.hpp>

#include "support/raw_connection.hpp"

namespace drun::test {
namespace {

constexpr const char* kEtcd = "/usr/bin/etcd";
constexpr std::size_t kLongestAnswer = 1U << 20U;

}  // namespace

EtcdCluster::EtcdCluster(std::size_t members, Arguments more)
    : more_(std::move(more)),
      tls_(std::any_of(more_.begin(), more_.end(), [](const std::string& word) {
        return word == "--auto-tls" || word == "--cert-file";
      })) {
  for (std::size_t i = 0; i < members; ++i)
    members_.push_back(std::make_unique<Member>());
  for (std::size_t i = 0; i < members; ++i)
    start(i);
}

EtcdCluster::~EtcdCluster() {
  for (std::size_t i = 0; i < members_.size(); ++i)
    kill(i);
}

bool EtcdCluster::installed() {
  return ::access(kEtcd, X_OK) == 0;
}

std::string EtcdCluster::name(std::size_t member) const {
  return "member" + std::to_string(member);
}

std::filesystem::path EtcdCluster::folder(std::size_t member) const {
  return folder_.path() / name(member);
}

Endpoint EtcdCluster::endpoint(std::size_t member) const {
  return {"127.0.0.1", static_cast<std::uint16_t>(members_[member]->client.number())};
}

std::string EtcdCluster::endpoints() const {
  std::string text;
  for (std::size_t i = 0; i < members_.size(); ++i)
    text += (i == 0 ? "" : ",") + to_string(endpoint(i));
  return text;
}

std::string EtcdCluster::certificate(std::size_t member) const {
  return folder(member) / "fixtures/client/cert.pem";
}

void EtcdCluster::start(std::size_t member) {
  std::string all;
  for (std::size_t i = 0; i < members_.size(); ++i)
    all += (i == 0 ? "" : ",") + name(i) + "=http://" + members_[i]->peer.endpoint();
  const std::string client = (tls_ ? "https://" : "http://") + members_[member]->client.endpoint();
  const std::string peer = "http://" + members_[member]->peer.endpoint();
  const Arguments words = Arguments{kEtcd,
                                    "--name",
                                    name(member),
                                    "--data-dir",
                                    folder(member),
                                    "--listen-client-urls",
                                    client,
                                    "--advertise-client-urls",
                                    client,
                                    "--listen-peer-urls",
                                    peer,
                                    "--initial-advertise-peer-urls",
                                    peer,
                                    "--initial-cluster",
                                    all} +
                          more_;
  std::vector<char*> argv;
  for (const auto& word : words)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const std::string log = folder_.path() / (name(member) + ".log");
  const pid_t pid = ::fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    ::execv(kEtcd, argv.data());
    ::_exit(127);
  }
  members_[member]->pid = pid;
}

void EtcdCluster::signal(std::size_t member, int number) {
  if (members_[member]->pid > 0) ::kill(members_[member]->pid, number);
  members_[member]->stopped = number == SIGSTOP;
}

void EtcdCluster::kill(std::size_t member) {
  signal(member, SIGKILL);
  pid_t& pid = members_[member]->pid;
  while (pid > 0 && ::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid = -1;
}

bool EtcdCluster::ready() {
  return eventually([this] {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (members_[i]->pid < 0) continue;
      if (tls_ ? !RawConnection(endpoint(i)).connected()
               : post("/v3/kv/range", R"({"key":"YQ=="})", i).find("revision") == std::string::npos)
        return false;
    }
    return true;
  });
}

std::size_t EtcdCluster::leader() {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i]->pid < 0 || members_[i]->stopped) continue;
    const auto status =
        nlohmann::json::parse(post("/v3/maintenance/status", "{}", i), nullptr, false);
    if (!status.is_object() || !status.contains("leader")) continue;
    if (status["leader"] == status["header"]["member_id"]) return i;
  }
  return members_.size();
}

bool EtcdCluster::elected(std::size_t before) {
  return eventually([this, before] {
    const std::size_t now = leader();
    return now < size() && now != before;
  });
}

std::string EtcdCluster::post(const std::string& path, const std::string& body,
                              std::size_t member) {
  RawConnection connection(endpoint(member));
  if (!connection.connected() || !connection.send("POST " + path + " HTTP/1.0\r\nContent-Length: " +
                                                  std::to_string(body.size()) + "\r\n\r\n" + body))
    return "";
  const std::string answer = connection.receive(kLongestAnswer);
  const auto head = answer.find("\r\n\r\n");
  return head == std::string::npos ? "" : answer.substr(head + 4);
}

std::string EtcdCluster::logs() const {
  std::string text;
  for (std::size_t i = 0; i < members_.size(); ++i)
    text += read_file(folder_.path() / (name(i) + ".log"));
  return text;
}

}  // namespace drun::test
