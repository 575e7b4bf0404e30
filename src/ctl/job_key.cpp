#include "ctl/job_key.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/printable.hpp"
#include "cli/usage_error.hpp"
#include "drun/store/errors.hpp"
#include "rendezvous/keys.hpp"
#include "secure/token.hpp"
#include "status/agent_socket.hpp"
#include "store/client/control_query.hpp"

namespace drun::ctl {
namespace {

using Clock = std::chrono::steady_clock;

// For all who are asked, at once.
constexpr std::chrono::milliseconds kKeyLimit{1'000};
// For a store that may be one that a key fits.
constexpr std::chrono::milliseconds kStoreLimit{2'000};
constexpr std::size_t kLongestAnswer = 4'096;

struct MadeKey {
  Tls tls;
  std::string place;  // "10.0.0.7:41001"; empty: not known yet
};

// Each key once. Whoever does not answer is left out: a store will say that it asks for a token.
std::vector<MadeKey> made_keys(const std::optional<std::string>& job, Clock::time_point deadline) {
  std::vector<MadeKey> keys;
  std::set<std::pair<std::string, std::string>> known;
  const auto limit = std::min(deadline, Clock::now() + kKeyLimit);
  for (auto& answer : status::ask_all(status::find_key_sockets(job), limit,
                                      status::Question::Status, kLongestAnswer)) {
    if (!answer || answer->size() < secure::TlsContext::kKeyBytes) continue;
    auto tls = secure::TlsContext::of_secret(
        std::string_view(*answer).substr(0, secure::TlsContext::kKeyBytes));
    std::string place = answer->substr(secure::TlsContext::kKeyBytes);
    secure::wipe(*answer);
    if (tls && known.emplace((*tls)->page_key(), place).second)
      keys.push_back({std::move(*tls), std::move(place)});
  }
  return keys;
}

bool fits(const MadeKey& key, const Endpoint& store, Clock::time_point deadline) {
  return store::ControlQuery::open(store, std::min(deadline, Clock::now() + kStoreLimit), false,
                                   key.tls)
      .ok();
}

// The one that opens the store there. A host may have several names, but the port is a number that
// few jobs have: such a key is tried first. The others are for a job whose store has moved, if this
// store asks for one at all: to a store that does, a question without a key is a stranger's.
Tls key_of_store(const std::vector<MadeKey>& keys, const Endpoint& store,
                 Clock::time_point deadline) {
  const auto is_there = [&](const MadeKey& key) {
    const auto place = parse_endpoint(key.place, 0);
    return place && place->port == store.port;
  };
  for (const MadeKey& key : keys)
    if (is_there(key) && fits(key, store, deadline)) return key.tls;
  if (std::ranges::all_of(keys, is_there)) return nullptr;
  const auto plain = store::ControlQuery::open(
      store, std::min(deadline, Clock::now() + kStoreLimit), false, nullptr);
  if (plain || plain.error().code() != store::Errc::WrongToken) return nullptr;
  for (const MadeKey& key : keys)
    if (!is_there(key) && fits(key, store, deadline)) return key.tls;
  return nullptr;
}

}  // namespace

// Two jobs may have one name, and of one whose store has moved not all know the place.
Tls made_key(const std::string& job, const std::string& place, Clock::time_point deadline) {
  const auto store = parse_endpoint(place, 0);
  return store ? key_of_store(made_keys(job, deadline), *store, deadline) : nullptr;
}

Tls made_key_at(const Endpoint& store, Clock::time_point deadline) {
  return key_of_store(made_keys(std::nullopt, deadline), store, deadline);
}

int job_token(const CtlOptions& options) {
  if (options.tls == nullptr)
    throw cli::UsageError(
        "there is no token: give the store's, in DRUN_TOKEN or with --token-file");
  const auto token = options.tls->job_token(rendezvous::escape_id(options.words.front()));
  if (!token) throw cli::UsageError("the token: " + token.error().what());
  std::string line = token->handed_over("");
  line.erase(0, 1);
  line += '\n';  // in the place of that: it does not move
  print(line);
  secure::wipe(line);
  return kOk;
}

int page_key(const CtlOptions& options, Clock::time_point deadline) {
  const auto job = options.words.empty() ? std::nullopt : std::optional(options.words.front());
  std::set<std::string> keys;
  // Of a job that is named, one that was made is more than what happens to be in the environment.
  if (job || options.tls == nullptr)
    for (const MadeKey& key : made_keys(job, deadline))
      keys.insert(key.tls->page_key());
  if (keys.empty() && options.tls != nullptr) keys.insert(options.tls->page_key());
  if (keys.size() == 1) {
    print(*keys.begin() + "\n");
    return kOk;
  }
  if (keys.size() > 1)
    throw cli::UsageError(job ? "there are several jobs " + escaped(*job) + " here"
                              : "there are several jobs here: drunctl page-key ID names one");
  log::error("there is no token: give the job's, in DRUN_TOKEN or with --token-file{}",
             job ? ", or run this on a host of job " + escaped(*job)
                 : ", or run this on a host of the job");
  return kNo;
}

}  // namespace drun::ctl
