#include "timeline/trace_json.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "base/json.hpp"

namespace drun::timeline {
namespace {

using nlohmann::ordered_json;

// A place in the trace.
struct Track {
  std::int64_t pid = 0;
  std::int64_t tid = 0;
};

double microseconds(std::int64_t ns) {
  return static_cast<double>(ns) / 1'000;
}

class TraceWriter {
 public:
  explicit TraceWriter(const Timeline& timeline)
      : timeline_(timeline), job_{static_cast<std::int64_t>(timeline.nodes.size()) + 1, 0} {}

  std::string write() {
    text_ = "{\"traceEvents\":[";
    name_tracks();
    for (std::size_t i = 0; i < timeline_.nodes.size(); ++i)
      add_node(i);
    add_rounds();
    for (const Mark& mark : timeline_.marks)
      add_mark(mark);
    for (const StopCause& cause : timeline_.causes)
      add_cause(cause);
    text_ += "\n],\"displayTimeUnit\":\"ms\",\"otherData\":" + json_text(facts(), true) + "}\n";
    return std::move(text_);
  }

 private:
  static Track track_of(std::size_t node, std::int64_t rank = -1) {
    return {static_cast<std::int64_t>(node) + 1, rank < 0 ? kNodeTrack : rank};
  }

  std::string label(std::size_t run, const std::string& what) const {
    const std::string& name = timeline_.run_names[run];
    return name.empty() ? what : name + ": " + what;
  }

  void add(const ordered_json& event) {
    text_ += text_.ends_with('[') ? "\n" : ",\n";
    text_ += json_text(event, true);
  }

  void name(const char* what, Track track, const ordered_json& arguments) {
    add({{"name", what}, {"ph", "M"}, {"pid", track.pid}, {"tid", track.tid}, {"args", arguments}});
  }

  void name_tracks() {
    name("process_name", job_, {{"name", "job"}});
    name("process_sort_index", job_, {{"sort_index", 0}});
    name("thread_name", job_, {{"name", "rounds"}});
    for (std::size_t i = 0; i < timeline_.nodes.size(); ++i) {
      const NodeRow& node = timeline_.nodes[i];
      const Track own = track_of(i);
      name("process_name", own, {{"name", label(node.run, node.name)}});
      name("process_sort_index", own, {{"sort_index", own.pid}});
      name("thread_name", own, {{"name", "node"}});
      name("thread_sort_index", own, {{"sort_index", -1}});
      for (const RankRow& worker : node.workers) {
        const Track track = track_of(i, worker.rank);
        name("thread_name", track, {{"name", "rank " + std::to_string(worker.rank)}});
        name("thread_sort_index", track, {{"sort_index", worker.rank}});
      }
    }
  }

  void add_slice(const std::string& what, Track track, std::int64_t begin, std::int64_t end,
                 const ordered_json& arguments) {
    add({{"name", what},
         {"cat", "drun"},
         {"ph", "X"},
         {"ts", microseconds(begin)},
         {"dur", microseconds(end - begin)},
         {"pid", track.pid},
         {"tid", track.tid},
         {"args", arguments}});
  }

  void add_span(const Span& span, Track track) {
    ordered_json arguments{{"round", span.round}};
    if (!span.text.empty()) arguments["text"] = span.text;
    if (span.cut) arguments["end"] = timeline_.live ? "not yet" : "not in the files";
    add_slice(std::string(name_of(span.state)), track, span.begin, span.end, arguments);
  }

  void add_node(std::size_t i) {
    for (const Span& span : timeline_.nodes[i].spans)
      add_span(span, track_of(i));
    for (const RankRow& worker : timeline_.nodes[i].workers)
      for (const Span& span : worker.spans)
        add_span(span, track_of(i, worker.rank));
  }

  void add_rounds() {
    const Round* last = nullptr;
    for (const Round& round : timeline_.rounds) {
      if (last != nullptr && last->run == round.run && round.restarts > last->restarts)
        add_restart(*last, round);
      ordered_json arguments{
          {"nodes", round.nodes}, {"ranks", round.ranks}, {"restarts", round.restarts}};
      if (!round.reason.empty()) arguments["stopped"] = round.reason;
      add_slice(label(round.run, "round " + std::to_string(round.number)), job_, round.begin,
                std::max(round.begin, round.end), arguments);
      last = &round;
    }
  }

  // The time between two rounds, and whom it starts anew.
  void add_restart(const Round& before, const Round& after) {
    const std::int64_t begin = std::min(before.end, after.begin);
    add_slice(label(after.run, "restart " + std::to_string(after.restarts)), job_, begin,
              after.begin, {{"reason", before.reason}});
    add_flows("restart", job_, begin, after.run, after.number, SpanState::Starting, std::nullopt);
  }

  // From a moment to each node that came into `state` in a round after it.
  void add_flows(const char* what, Track from, std::int64_t at, std::size_t run, std::int64_t round,
                 SpanState state, std::optional<std::size_t> without) {
    for (std::size_t i = 0; i < timeline_.nodes.size(); ++i) {
      const NodeRow& node = timeline_.nodes[i];
      if (node.run != run || i == without) continue;
      const auto span = std::find_if(node.spans.begin(), node.spans.end(), [&](const Span& each) {
        return each.round == round && each.state == state;
      });
      if (span == node.spans.end() || span->begin < at) continue;
      ++flows_;
      add_flow_end(what, "s", from, at);
      add_flow_end(what, "f", track_of(i), span->begin);
    }
  }

  void add_flow_end(const char* what, const char* phase, Track track, std::int64_t at) {
    ordered_json event{{"name", what},          {"cat", "drun"},    {"ph", phase},
                       {"id", flows_},          {"pid", track.pid}, {"tid", track.tid},
                       {"ts", microseconds(at)}};
    if (*phase == 'f') event["bp"] = "e";  // the slice that it lies in, not the next one
    add(event);
  }

  void add_mark(const Mark& mark) {
    const Track track = track_of(mark.node, mark.rank);
    add({{"name", mark.name},
         {"cat", mark.bad ? "drun,bad" : "drun"},
         {"ph", "i"},
         {"s", "t"},
         {"ts", microseconds(mark.at)},
         {"pid", track.pid},
         {"tid", track.tid},
         {"args", {{"text", mark.text}}}});
  }

  void add_cause(const StopCause& cause) {
    const Track track = track_of(cause.node, cause.rank);
    add({{"name", "first cause"},
         {"cat", "drun,bad"},
         {"ph", "i"},
         {"s", "g"},
         {"ts", microseconds(cause.at)},
         {"pid", track.pid},
         {"tid", track.tid},
         {"args", {{"round", cause.round}, {"text", cause.text}}}});
    add_flows("cause", track, cause.at, cause.run, cause.round, SpanState::Stopping, cause.node);
  }

  ordered_json facts() const {
    return {{"jobs", timeline_.jobs},
            {"begin", events::rfc3339(timeline_.begin_ns)},
            {"notes", timeline_.notes}};
  }

  const Timeline& timeline_;
  Track job_;
  std::string text_;
  std::int64_t flows_ = 0;
};

}  // namespace

std::string trace_json(const Timeline& timeline) {
  return TraceWriter(timeline).write();
}

}  // namespace drun::timeline
