// What an agent does for the workers of a round besides starting them. Null: not asked for.
#pragma once

#include <string>

#include "launcher/workers/before_start.hpp"
#include "launcher/workers/before_stop.hpp"
#include "launcher/workers/peer_directory.hpp"
#include "launcher/workers/rank_service.hpp"
#include "launcher/workers/worker_watch.hpp"

namespace drun::launcher {

struct RoundServices {
  RankService* ranks = nullptr;
  PeerDirectory* peers = nullptr;
  WorkerWatch* watch = nullptr;
  BeforeStop* before_stop = nullptr;
  BeforeStart* before_start = nullptr;
  std::string timer_file = {};  // for TORCHELASTIC_TIMER_FILE; empty: nobody serves torch's timers
};

}  // namespace drun::launcher
