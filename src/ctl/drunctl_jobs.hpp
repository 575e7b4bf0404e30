// The jobs that a store carries, from the documents that their agents keep there.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "drun/base/result.hpp"
#include "jobs/job_view.hpp"
#include "store/client/control_query.hpp"

namespace drun::ctl {

using jobs::Documents;
using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

// Where the store of the job at this endpoint is now: there may be an agent that only knows where
// it has gone. Says so if it is elsewhere.
[[nodiscard]] Endpoint followed(const Endpoint& endpoint, Deadline deadline,
                                const store::ControlQuery::Tls& tls);

struct WatchedDocuments {
  std::uint64_t watch = 0;  // the request whose replies are their changes
  Documents documents;
};
// Those whose keys begin with `prefix`.
[[nodiscard]] Result<WatchedDocuments> read_documents(store::ControlQuery& query,
                                                      const std::string& prefix, Deadline deadline);

// How long ago the agents were heard from whose keys begin with `prefix`; none if the store is one
// that does not tell it. Not while replies to a watch may come: they would be lost.
[[nodiscard]] jobs::LastWords last_words(store::ControlQuery& query, const std::string& prefix,
                                         Deadline deadline);

enum class Deletion { Done, NoSuchJob, HasAgents };
// All keys of the job, unless an agent of it is there, or comes meanwhile.
[[nodiscard]] Result<Deletion> delete_job(store::ControlQuery& query, const std::string& id,
                                          Deadline deadline);

}  // namespace drun::ctl
