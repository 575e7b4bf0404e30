#include "ctl/job_key.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/printable.hpp"
#include "cli/usage_error.hpp"
#include "ctl/drunctl_health.hpp"
#include "secure/token.hpp"
#include "status/agent_socket.hpp"
#include "store/client/control_query.hpp"

namespace drun::ctl {
namespace {

using Time = std::chrono::steady_clock::time_point;

constexpr std::chrono::milliseconds kKeyLimit{1'000};
constexpr std::size_t kLongestAnswer = 4'096;

struct MadeKey {
  Tls tls;
  std::string place;  // "10.0.0.7:41001"; empty: not known yet
};

// Whoever does not answer is left out: a store will say that it asks for a token.
std::vector<MadeKey> made_keys(const std::optional<std::string>& job, Time deadline) {
  std::vector<MadeKey> keys;
  const auto limit = std::min(deadline, std::chrono::steady_clock::now() + kKeyLimit);
  for (const std::string& socket : status::find_key_sockets(job)) {
    auto answer =
        status::ask(socket, std::max(limit, std::chrono::steady_clock::now() + kLeastForAgent),
                    status::Question::Status, kLongestAnswer);
    if (!answer || answer->size() < secure::TlsContext::kKeyBytes) continue;
    auto tls = secure::TlsContext::of_key(answer->substr(0, secure::TlsContext::kKeyBytes));
    if (tls) keys.push_back({std::move(*tls), answer->substr(secure::TlsContext::kKeyBytes)});
    secure::wipe(*answer);
  }
  return keys;
}

}  // namespace

// Two jobs may have one name.
Tls made_key(const std::string& job, const std::string& place, Time deadline) {
  for (const MadeKey& key : made_keys(job, deadline))
    if (key.place == place) return key.tls;
  return nullptr;
}

// A host may have several names, but the port is a number that few jobs have.
Tls made_key_at(const Endpoint& store, Time deadline) {
  for (const MadeKey& key : made_keys(std::nullopt, deadline)) {
    const auto place = parse_endpoint(key.place, 0);
    if (place && place->port == store.port &&
        store::ControlQuery::open(store, deadline, false, key.tls))
      return key.tls;
  }
  return nullptr;
}

int page_key(const CtlOptions& options, Time deadline) {
  const auto job = options.words.empty() ? std::nullopt : std::optional(options.words.front());
  std::set<std::string> keys;
  if (options.tls != nullptr) {
    keys.insert(options.tls->page_key());
  } else {
    for (const MadeKey& key : made_keys(job, deadline))
      keys.insert(key.tls->page_key());
  }
  if (keys.size() == 1) {
    print(*keys.begin() + "\n");
    return kOk;
  }
  if (keys.size() > 1)
    throw cli::UsageError("there are several jobs here: drunctl page-key ID names one");
  log::error("there is no token: give the job's, in DRUN_TOKEN or with --token-file{}",
             job ? ", or run this on a host of job " + escaped(*job)
                 : ", or run this on a host of the job");
  return kNo;
}

}  // namespace drun::ctl
