// The JSON of NCCL's RAS service, read without a tree of it: an answer may be of tens of MiB, and
// anybody may listen at that port.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/utf8.hpp"
#include "hang/nccl_ras.hpp"

namespace drun::hang {
namespace {

using nlohmann::json;

// What is above that, NCCL does not write.
constexpr std::size_t kDeepest = 16;
constexpr std::size_t kLongestName = 64;  // of an operation, or a host
constexpr std::size_t kMostOperations = 32;
// Communicators, their ranks and what these have begun: about 100 bytes each.
constexpr std::size_t kMostEntries = 2'000'000;

class RasReader final : public nlohmann::json_sax<json> {
 public:
  [[nodiscard]] bool has_communicators() const { return has_communicators_; }
  RasStatus take() { return std::move(status_); }

  bool null() override { return true; }
  bool boolean(bool value) override {
    if (here() == In::State && value &&
        (key_ == "finalize_called" || key_ == "destroy_flag" || key_ == "abort_flag"))
      rank_.leaving = true;
    return true;
  }
  bool number_integer(std::int64_t) override { return true; }  // a negative one
  bool number_unsigned(std::uint64_t value) override {
    if (here() == In::Counts) return count(value);
    if (value > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) return true;
    const int number = static_cast<int>(value);
    if (here() == In::Communicator && key_ == "size") status_.back().size = number;
    if (here() == In::Rank && key_ == "rank") rank_.rank = number;
    if (here() == In::Rank && key_ == "pid") rank_.pid = number;
    return true;
  }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string& text) override {
    if (here() == In::Rank && key_ == "host") rank_.host = cut_utf8(text, kLongestName);
    return true;
  }
  bool binary(json::binary_t&) override { return true; }
  bool key(std::string& name) override {
    key_ = std::move(name);
    return true;
  }

  bool start_object(std::size_t) override { return open(inner_object()); }
  bool end_object() override {
    const bool is_rank = here() == In::Rank;
    open_.pop_back();
    if (!is_rank || rank_.rank < 0) return true;
    auto& communicator = status_.back();
    auto& ranks = here() == In::Missing ? communicator.missing : communicator.ranks;
    ranks.push_back(std::move(rank_));
    return true;
  }
  bool start_array(std::size_t) override { return open(inner_array()); }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override {
    return false;
  }

 private:
  // Which object or array.
  enum class In {
    Nothing,
    Answer,
    Communicators,
    Communicator,
    Ranks,
    Missing,
    Rank,
    State,
    Counts
  };

  [[nodiscard]] In here() const { return open_.empty() ? In::Nothing : open_.back(); }

  In inner_object() {
    if (open_.empty()) return In::Answer;
    if (here() == In::Communicators) {
      status_.emplace_back().size = -1;
      return In::Communicator;
    }
    if (here() == In::Ranks || here() == In::Missing) {
      rank_ = {};
      rank_.rank = rank_.pid = -1;
      return In::Rank;
    }
    if (here() == In::Rank && key_ == "status") return In::State;
    if (here() == In::Rank && key_ == "collective_counts") return In::Counts;
    return In::Nothing;
  }

  In inner_array() {
    if (here() == In::Answer && key_ == "communicators") {
      has_communicators_ = true;
      return In::Communicators;
    }
    if (here() != In::Communicator) return In::Nothing;
    return key_ == "ranks" ? In::Ranks : key_ == "missing_ranks" ? In::Missing : In::Nothing;
  }

  bool open(In in) {
    open_.push_back(in);
    if (open_.size() > kDeepest) return false;
    return (in != In::Communicator && in != In::Rank) || is_one_more();
  }

  bool count(std::uint64_t value) {
    if (key_.size() > kLongestName || rank_.begun.size() >= kMostOperations) return true;
    rank_.begun[key_] = value;
    return is_one_more();
  }

  bool is_one_more() { return ++entries_ <= kMostEntries; }

  RasStatus status_;
  bool has_communicators_ = false;
  std::vector<In> open_;
  std::string key_;
  RasRank rank_;  // that is being read
  std::size_t entries_ = 0;
};

}  // namespace

Result<RasStatus> decode_ras_status(std::string_view text) {
  const auto refused = [](const char* why) {
    return Error(std::make_error_code(std::errc::protocol_error), why);
  };
  RasReader reader;
  if (!json::sax_parse(text, &reader)) return refused("its answer is no JSON, or too much of it");
  if (!reader.has_communicators()) return refused("its answer has no communicators");
  return reader.take();
}

}  // namespace drun::hang
