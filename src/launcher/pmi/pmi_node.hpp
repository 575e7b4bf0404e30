// What a node says to its workers as the server of PMI-1, by which programs of the MPICH family
// find one another: a decision, without sockets. One object serves one round.
//
// The workers of a node put pairs of a key and a value; a barrier makes them known to all. So there
// is one exchange between the nodes for each barrier, in which each says once what its own workers
// have put. Exchange 0 comes before: how many workers each node has.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drun::launcher::pmi {

// What PMI-1 lets a program ask for.
inline constexpr std::size_t kLongestSpace = 256;
inline constexpr std::size_t kLongestKey = 64;
inline constexpr std::size_t kLongestValue = 1'024;
// Of keys and values, that a worker may put between two barriers, and that a node keeps in a round.
// Beyond them a put fails.
inline constexpr std::size_t kMostOfWorker = std::size_t{64} << 10;
inline constexpr std::size_t kMostOfRound = std::size_t{64} << 20;

// The place of this node in its round.
struct World {
  std::string space;  // the name of the round's pairs, alike on all nodes: without blanks
  int local_size = 1;
  int world_size = 1;
  int nodes = 1;
};

// For one worker.
struct Reply {
  int local_rank = 0;
  std::string bytes;
};
// For all nodes; their texts are the answer.
struct Exchange {
  int number = 0;
  std::string text;
};
// This worker has failed, whatever it does now.
struct Fault {
  int local_rank = 0;
  int exit_code = 1;  // 1 to 255
  std::string cause;  // for people; printable
};
struct Wanted {
  std::vector<Reply> replies;
  std::optional<Exchange> exchange;  // at most one is under way
  std::vector<Fault> faults;         // one for each worker
};

class Node {
 public:
  explicit Node(World world);

  // A worker has sent this: any part of what it says.
  void receive(int local_rank, std::string_view bytes);
  // The texts of all nodes, in the order of their ranks, for the exchange that was asked for last.
  // What is no text of a node's is ignored: it came over a network.
  void exchanged(const std::vector<std::string>& texts);
  // It has said something.
  [[nodiscard]] bool begun(int local_rank) const;
  // It must be heard no more, because it does what a client of PMI-1 does not.
  void refuse(int local_rank, std::string cause);
  // A worker has ended with 0. One that has begun (init) without its finalize may leave the others
  // waiting for ever, so that is a fault of its own.
  [[nodiscard]] std::optional<Fault> ended(int local_rank) const;

  // The same: what there is to say of a worker that has never spoken. Once for all of them.
  [[nodiscard]] std::optional<std::string> warning_at_end(int local_rank);

  // What has to be done since the last call.
  [[nodiscard]] Wanted take();

 private:
  enum class Stage { New, Begun, InBarrier, Done, Failed };
  // From "mcmd=spawn" to "endcmd"; after the last of a call comes the answer.
  struct Block {
    std::string all;
    std::string so_far;
  };
  struct Worker {
    Stage stage = Stage::New;
    std::string received;  // of a line that is not complete
    std::optional<Block> block;
    bool asks_layout = false;  // for what exchange 0 will tell
    std::size_t put = 0;       // bytes since its last barrier
  };

  void on_line(int local_rank, const std::string& line);
  void on_line_of_block(int local_rank, const std::string& line);
  void on_put(int local_rank, const std::string& line);
  void on_get(int local_rank, const std::string& line);
  void on_barrier(int local_rank, const std::string& line);
  void on_abort(int local_rank, const std::string& line);
  void answer_layout(int local_rank);
  void take_layout(const std::vector<std::string>& texts);
  void end_barrier(const std::vector<std::string>& texts);
  void ask_if_due();
  void reply(int local_rank, std::string line);
  void fail(int local_rank, int exit_code, std::string cause);

  const World world_;
  std::vector<Worker> workers_;
  std::map<std::string, std::string> pairs_;
  std::size_t kept_ = 0;               // bytes of pairs_
  std::string fresh_;                  // put since the last barrier, as the others hear it
  std::optional<std::string> layout_;  // PMI_process_mapping; empty: not known
  int next_exchange_ = 0;
  bool exchanging_ = false;
  bool warned_ = false;  // of a worker that does not speak PMI-1
  Wanted wanted_;
};

}  // namespace drun::launcher::pmi
