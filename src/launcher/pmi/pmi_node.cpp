#include "launcher/pmi/pmi_node.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "base/printable.hpp"
#include "base/split.hpp"
#include "base/whole_number.hpp"
#include "launcher/pmi/pmi_line.hpp"

namespace drun::launcher::pmi {
namespace {

// The key under which MPICH asks which ranks share a node.
constexpr std::string_view kLayoutKey = "PMI_process_mapping";
constexpr int kMostWorkersOfNode = 1'000'000;

// "(vector,(FIRST NODE,NODES,WORKERS OF EACH),...)": equal neighbours are one block.
std::string layout_text(const std::vector<int>& sizes) {
  std::string result = "(vector";
  for (std::size_t first = 0, last = 0; first < sizes.size(); first = last) {
    while (last < sizes.size() && sizes[last] == sizes[first])
      ++last;
    result += ",(" + std::to_string(first) + "," + std::to_string(last - first) + "," +
              std::to_string(sizes[first]) + ")";
  }
  return result + ")";
}

}  // namespace

Node::Node(World world)
    : world_(std::move(world)), workers_(static_cast<std::size_t>(world_.local_size)) {
  if (world_.nodes == 1) {
    layout_ = layout_text({world_.local_size});
    next_exchange_ = 1;
  }
  ask_if_due();
}

void Node::receive(int local_rank, std::string_view bytes) {
  Worker& worker = workers_[static_cast<std::size_t>(local_rank)];
  worker.received += bytes;
  while (worker.stage != Stage::Failed) {
    const auto line = take_line(worker.received);
    if (!line) return fail(local_rank, 1, "broke PMI-1 with " + line.error().what());
    if (!*line) return;
    if (worker.block)
      on_line_of_block(local_rank, **line);
    else
      on_line(local_rank, **line);
  }
}

void Node::on_line(int local_rank, const std::string& line) {
  Worker& worker = workers_[static_cast<std::size_t>(local_rank)];
  const std::string command = field(line, "cmd");
  if (worker.stage == Stage::Done)
    return fail(local_rank, 1, "broke PMI-1 with '" + printable(line) + "' after cmd=finalize");
  if (command == "init") {
    const bool known = field(line, "pmi_version") == "1";
    if (known && worker.stage == Stage::New) worker.stage = Stage::Begun;
    return reply(local_rank, "response_to_init pmi_version=1 pmi_subversion=1 rc=" +
                                 std::string(known ? "0" : "-1"));
  }
  if (command == "abort") return on_abort(local_rank, line);
  const auto breaks_rule = [&](const char* when) {
    fail(local_rank, 1, "broke PMI-1 with '" + printable(line) + "' " + when);
  };
  if (worker.stage == Stage::New) return breaks_rule("before cmd=init");
  if (worker.stage == Stage::InBarrier) return breaks_rule("in a barrier");
  if (command == "get_maxes")
    return reply(local_rank, "maxes rc=0 kvsname_max=" + std::to_string(kLongestSpace) +
                                 " keylen_max=" + std::to_string(kLongestKey) +
                                 " vallen_max=" + std::to_string(kLongestValue));
  if (command == "get_appnum") return reply(local_rank, "appnum rc=0 appnum=0");
  if (command == "get_universe_size")
    return reply(local_rank, "universe_size rc=0 size=" + std::to_string(world_.world_size));
  if (command == "get_my_kvsname")
    return reply(local_rank, "my_kvsname rc=0 kvsname=" + world_.space);
  if (command == "put") return on_put(local_rank, line);
  if (command == "get") return on_get(local_rank, line);
  if (command == "barrier_in") return on_barrier(local_rank, line);
  if (command == "finalize") {
    worker.stage = Stage::Done;
    return reply(local_rank, "finalize_ack rc=0");
  }
  // What a program can do without: MPI_Publish_name() and MPI_Comm_spawn() fail.
  for (const char* name : {"publish", "lookup", "unpublish"})
    if (command == std::string(name) + "_name")
      return reply(local_rank, std::string(name) + "_result info=failed rc=-1 msg=not_served");
  if (field(line, "mcmd") == "spawn") {
    worker.block.emplace();
    return;
  }
  breaks_rule("as a command");
}

// A call of MPI_Comm_spawn_multiple() is several blocks, and has one answer.
void Node::on_line_of_block(int local_rank, const std::string& line) {
  Worker& worker = workers_[static_cast<std::size_t>(local_rank)];
  if (auto all = field(line, "totspawns"); !all.empty()) worker.block->all = std::move(all);
  if (auto so_far = field(line, "spawnssofar"); !so_far.empty())
    worker.block->so_far = std::move(so_far);
  if (line != "endcmd") return;
  const bool last = worker.block->all == worker.block->so_far;
  worker.block.reset();
  if (last) reply(local_rank, "spawn_result rc=-1 errmsg=not_served");
}

void Node::on_put(int local_rank, const std::string& line) {
  Worker& worker = workers_[static_cast<std::size_t>(local_rank)];
  const std::string key = field(line, "key");
  const std::string value = field(line, "value");
  const std::size_t size = key.size() + value.size();
  const char* refused = nullptr;
  if (field(line, "kvsname") != world_.space) refused = "unknown_kvsname";
  if (key.empty() || key.size() > kLongestKey) refused = "bad_key";
  if (value.size() > kLongestValue) refused = "value_too_long";
  if (worker.put + size > kMostOfWorker || kept_ + size > kMostOfRound) refused = "too_much_put";
  if (refused != nullptr) return reply(local_rank, "put_result rc=-1 msg=" + std::string(refused));
  worker.put += size;
  kept_ += size;
  pairs_[key] = value;
  if (world_.nodes > 1) fresh_ += key + " " + value + "\n";
  reply(local_rank, "put_result rc=0 msg=success");
}

void Node::on_get(int local_rank, const std::string& line) {
  const std::string key = field(line, "key");
  if (field(line, "kvsname") != world_.space)
    return reply(local_rank, "get_result rc=-1 msg=unknown_kvsname value=unknown");
  if (key == kLayoutKey && !layout_) {
    workers_[static_cast<std::size_t>(local_rank)].asks_layout = true;
    return;
  }
  if (key == kLayoutKey) return answer_layout(local_rank);
  const auto found = pairs_.find(key);
  if (found == pairs_.end())
    return reply(local_rank, "get_result rc=-1 msg=key_not_found value=unknown");
  reply(local_rank, "get_result rc=0 msg=success value=" + found->second);
}

void Node::answer_layout(int local_rank) {
  if (layout_->empty() || layout_->size() > kLongestValue)
    return reply(local_rank, "get_result rc=-1 msg=key_not_found value=unknown");
  reply(local_rank, "get_result rc=0 msg=success value=" + *layout_);
}

void Node::on_barrier(int local_rank, const std::string& line) {
  if (!field(line, "group").empty())  // of PMI 1.2, which was not agreed on
    return reply(local_rank, "barrier_out rc=-1 msg=groups_are_not_served");
  workers_[static_cast<std::size_t>(local_rank)].stage = Stage::InBarrier;
  ask_if_due();
}

// The program ends itself then, with this very code; where it does not, it has failed all the same.
void Node::on_abort(int local_rank, const std::string& line) {
  const std::string text = field(line, "exitcode");
  const int code = whole_number<int>(text).value_or(1) & 0xff;
  fail(local_rank, code == 0 ? 1 : code, "aborted the job with code " + printable(text));
}

void Node::exchanged(const std::vector<std::string>& texts) {
  if (!exchanging_) return;
  exchanging_ = false;
  if (!layout_)
    take_layout(texts);
  else
    end_barrier(texts);
  ask_if_due();
}

void Node::take_layout(const std::vector<std::string>& texts) {
  std::vector<int> sizes;
  for (const std::string& text : texts)
    sizes.push_back(std::clamp(whole_number<int>(text).value_or(0), 0, kMostWorkersOfNode));
  const auto sum = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  layout_ = sum == world_.world_size ? layout_text(sizes) : "";
  for (int rank = 0; rank < world_.local_size; ++rank) {
    Worker& worker = workers_[static_cast<std::size_t>(rank)];
    if (std::exchange(worker.asks_layout, false)) answer_layout(rank);
  }
}

void Node::end_barrier(const std::vector<std::string>& texts) {
  for (std::string_view text : texts) {
    while (!text.empty()) {
      std::string_view value = take_until(text, '\n');
      const std::string_view key = take_until(value, ' ');
      if (key.empty() || key.size() > kLongestKey || value.size() > kLongestValue ||
          value.find(' ') != std::string_view::npos)
        continue;
      std::string& known = pairs_[std::string(key)];
      if (known == value) continue;
      if (kept_ + key.size() + value.size() > kMostOfRound) break;
      kept_ += key.size() + value.size();
      known = value;
    }
  }
  for (int rank = 0; rank < world_.local_size; ++rank) {
    Worker& worker = workers_[static_cast<std::size_t>(rank)];
    if (worker.stage != Stage::InBarrier) continue;
    worker.stage = Stage::Begun;
    worker.put = 0;
    reply(rank, "barrier_out rc=0");
  }
}

// One exchange at a time: that of the layout first, then one for each barrier.
void Node::ask_if_due() {
  if (exchanging_) return;
  if (!layout_) {
    exchanging_ = true;
    wanted_.exchange = Exchange{next_exchange_++, std::to_string(world_.local_size)};
    return;
  }
  const bool all_in = std::all_of(workers_.begin(), workers_.end(), [](const Worker& worker) {
    return worker.stage == Stage::InBarrier;
  });
  if (!all_in) return;
  if (world_.nodes == 1) return end_barrier({});
  exchanging_ = true;
  wanted_.exchange = Exchange{next_exchange_++, std::exchange(fresh_, "")};
}

bool Node::begun(int local_rank) const {
  return workers_[static_cast<std::size_t>(local_rank)].stage != Stage::New;
}

void Node::refuse(int local_rank, std::string cause) {
  if (workers_[static_cast<std::size_t>(local_rank)].stage != Stage::Failed)
    fail(local_rank, 1, std::move(cause));
}

std::optional<Fault> Node::ended(int local_rank) const {
  const Stage stage = workers_[static_cast<std::size_t>(local_rank)].stage;
  if (stage != Stage::Begun && stage != Stage::InBarrier) return std::nullopt;
  return Fault{local_rank, 1, "ended without MPI_Finalize"};
}

std::optional<std::string> Node::warning_at_end(int local_rank) {
  if (begun(local_rank) || world_.world_size == 1 || std::exchange(warned_, true))
    return std::nullopt;
  return "local rank " + std::to_string(local_rank) +
         " has ended without asking for the others; a program of Open MPI is a world of its own "
         "under drun";
}

Wanted Node::take() {
  return std::exchange(wanted_, {});
}

void Node::reply(int local_rank, std::string line) {
  wanted_.replies.push_back({local_rank, "cmd=" + std::move(line) + "\n"});
}

void Node::fail(int local_rank, int exit_code, std::string cause) {
  Worker& worker = workers_[static_cast<std::size_t>(local_rank)];
  worker.stage = Stage::Failed;
  worker.received.clear();
  wanted_.faults.push_back({local_rank, exit_code, std::move(cause)});
}

}  // namespace drun::launcher::pmi
