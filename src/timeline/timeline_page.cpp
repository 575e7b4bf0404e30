#include "timeline/timeline_page.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "timeline/page_template.hpp"

namespace drun::timeline {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kPlaceOfData = "@DATA@";
constexpr std::size_t kMostMarks = 20'000;

// Microseconds: a browser's numbers hold them for centuries.
std::int64_t page_time(std::int64_t ns) {
  return ns / 1'000;
}

struct PageRow {
  std::string label;
  std::vector<std::size_t> nodes;                          // that it was on, in time
  std::vector<std::pair<std::size_t, const Span*>> spans;  // with their nodes
};

// Which row shows what.
struct PageRows {
  std::vector<PageRow> rows;
  std::map<std::pair<std::string, std::int64_t>, std::size_t> of_rank;  // job and rank
  std::vector<std::size_t> of_node;
  bool aggregated = false;
};

std::string with_job(const Timeline& timeline, std::size_t node, const std::string& label) {
  return timeline.jobs.size() < 2 ? label : label + ", " + timeline.nodes[node].job;
}

// The rows of ranks follow a rank from node to node and from run to run of a job.
void add_rank_rows(const Timeline& timeline, PageRows& page) {
  std::map<std::pair<std::string, std::int64_t>, PageRow> rows;
  for (std::size_t i = 0; i < timeline.nodes.size(); ++i)
    for (const RankRow& worker : timeline.nodes[i].workers) {
      PageRow& row = rows[{timeline.nodes[i].job, worker.rank}];
      row.label = with_job(timeline, i, "rank " + std::to_string(worker.rank));
      for (const Span& span : worker.spans)
        row.spans.emplace_back(i, &span);
    }
  for (auto& [key, row] : rows) {
    page.of_rank[key] = page.rows.size();
    page.rows.push_back(std::move(row));
  }
}

void add_node_row(const Timeline& timeline, std::size_t i, const std::string& label,
                  PageRows& page) {
  PageRow row{with_job(timeline, i, label), {i}, {}};
  for (const Span& span : timeline.nodes[i].spans)
    row.spans.emplace_back(i, &span);
  page.of_node[i] = page.rows.size();
  page.rows.push_back(std::move(row));
}

std::string ranks_of(const NodeRow& node) {
  if (node.workers.empty()) return node.name;
  const auto first = std::to_string(node.workers.front().rank);
  const auto last = std::to_string(node.workers.back().rank);
  return (first == last ? "rank " + first : "ranks " + first + "-" + last);
}

PageRows rows_of(const Timeline& timeline) {
  PageRows page;
  page.of_node.assign(timeline.nodes.size(), std::numeric_limits<std::size_t>::max());
  page.aggregated = timeline.ranks() > kMostRankRows;
  if (!page.aggregated) add_rank_rows(timeline, page);
  for (std::size_t i = 0; i < timeline.nodes.size(); ++i) {
    const NodeRow& node = timeline.nodes[i];
    if (page.aggregated) {
      add_node_row(timeline, i, ranks_of(node), page);
    } else if (node.workers.empty()) {
      add_node_row(timeline, i, "no rank", page);
    } else {
      page.of_node[i] = page.of_rank.at({node.job, node.workers.front().rank});
    }
  }
  for (PageRow& row : page.rows) {
    std::stable_sort(row.spans.begin(), row.spans.end(), [](const auto& a, const auto& b) {
      return a.second->begin < b.second->begin;
    });
    for (const auto& [node, span] : row.spans)
      if (std::find(row.nodes.begin(), row.nodes.end(), node) == row.nodes.end())
        row.nodes.push_back(node);
  }
  return page;
}

// [state, begin, end, round, node, cut, text]; short, because there are many.
Json json_of(const std::pair<std::size_t, const Span*>& placed) {
  const Span& span = *placed.second;
  return Json::array({static_cast<int>(span.state), page_time(span.begin), page_time(span.end),
                      span.round, placed.first, span.cut ? 1 : 0, span.text});
}

class PageData {
 public:
  explicit PageData(const Timeline& timeline) : timeline_(timeline), page_(rows_of(timeline)) {}

  Json json() const {
    Json data{{"jobs", timeline_.jobs},
              {"begin_ms", timeline_.begin_ns / 1'000'000},
              {"length", page_time(timeline_.length)},
              {"ranks", timeline_.ranks()},
              {"aggregated", page_.aggregated},
              {"runs", timeline_.run_names},
              {"states", Json::array()},
              {"nodes", Json::array()},
              {"rows", Json::array()},
              {"rounds", Json::array()},
              {"marks", Json::array()},
              {"causes", Json::array()},
              {"endings", Json::array()},
              {"notes", timeline_.notes}};
    for (std::size_t i = 0; i < kStates; ++i)
      data["states"].push_back(name_of(static_cast<SpanState>(i)));
    for (const NodeRow& node : timeline_.nodes)
      data["nodes"].push_back(node.name);
    for (const PageRow& row : page_.rows)
      data["rows"].push_back(json_of_row(row));
    for (const Round& round : timeline_.rounds)
      data["rounds"].push_back({{"run", round.run},
                                {"number", round.number},
                                {"begin", page_time(round.begin)},
                                {"end", page_time(round.end)},
                                {"nodes", round.nodes},
                                {"ranks", round.ranks},
                                {"restarts", round.restarts},
                                {"reason", round.reason}});
    add_marks(data);
    for (const StopCause& cause : timeline_.causes)
      data["causes"].push_back(
          {{"run", cause.run},
           {"round", cause.round},
           {"at", page_time(cause.at)},
           {"row", cause.placed ? row_of(cause.node, cause.rank, cause.at) : -1},
           {"node", cause.placed ? static_cast<int>(cause.node) : -1},
           {"rank", cause.rank},
           {"text", cause.text}});
    for (const Ending& ending : timeline_.endings)
      data["endings"].push_back({{"run", ending.run},
                                 {"at", page_time(ending.at)},
                                 {"succeeded", ending.end == LoggedEnd::Succeeded},
                                 {"exit_code", ending.exit_code},
                                 {"text", ending.text}});
    return data;
  }

 private:
  std::int64_t row_of(std::size_t node, std::int64_t rank, std::int64_t at) const {
    const std::string& job = timeline_.nodes[node].job;
    const auto row = page_.of_rank.find({job, rank < 0 ? first_rank(node, at) : rank});
    return static_cast<std::int64_t>(row == page_.of_rank.end() ? page_.of_node[node]
                                                                : row->second);
  }

  // The first that the node had then, or before; -1: none yet.
  std::int64_t first_rank(std::size_t node, std::int64_t at) const {
    std::int64_t rank = -1;
    std::int64_t since = -1;
    for (const RankRow& worker : timeline_.nodes[node].workers) {
      const auto next =
          std::upper_bound(worker.spans.begin(), worker.spans.end(), at,
                           [](std::int64_t time, const Span& span) { return time < span.begin; });
      if (next == worker.spans.begin() || std::prev(next)->round <= since) continue;
      since = std::prev(next)->round;
      rank = worker.rank;
    }
    return rank;
  }

  static Json json_of_row(const PageRow& row) {
    Json spans = Json::array();
    for (const auto& span : row.spans)
      spans.push_back(json_of(span));
    return {{"label", row.label}, {"nodes", row.nodes}, {"spans", std::move(spans)}};
  }

  // The bad ones first, if there are too many for a page.
  void add_marks(Json& data) const {
    std::size_t bad = 0;
    for (const Mark& mark : timeline_.marks)
      bad += mark.bad ? 1 : 0;
    const std::size_t others = kMostMarks - std::min(bad, kMostMarks);
    std::size_t bad_shown = 0;
    std::size_t others_shown = 0;
    for (const Mark& mark : timeline_.marks) {
      if (mark.bad ? ++bad_shown > kMostMarks : ++others_shown > others) continue;
      data["marks"].push_back(
          Json::array({page_time(mark.at), mark.placed ? row_of(mark.node, mark.rank, mark.at) : -1,
                       mark.node, mark.rank, mark.bad ? 1 : 0, mark.name, mark.text}));
    }
  }

  const Timeline& timeline_;
  PageRows page_;
};

}  // namespace

std::string page_data(const Timeline& timeline) {
  std::string text = json_text(PageData(timeline).json(), true);
  // "</script>" in a text would end the data. In JSON "<" stands in strings only.
  std::string safe;
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string timeline_page(const Timeline& timeline) {
  std::string page(page_template());
  const auto place = page.find(kPlaceOfData);
  return page.replace(place, kPlaceOfData.size(), page_data(timeline));
}

}  // namespace drun::timeline
