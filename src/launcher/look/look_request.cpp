#include "launcher/look/look_request.hpp"

#include <cstdint>
#include <system_error>

#include "base/json.hpp"

namespace drun::launcher {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

std::optional<milliseconds> silence_of(const json& object) {
  const auto found = object.find("silence");
  if (found == object.end()) return std::nullopt;
  return milliseconds(found->get<std::int64_t>());
}

}  // namespace

std::string encode(const LookRequest& request) {
  json workers = json::array();
  for (const LookRequest::Worker& worker : request.workers) {
    json entry{{"rank", worker.rank}, {"pid", worker.pid}};
    if (worker.silence) entry["silence"] = worker.silence->count();
    if (worker.never_printed) entry["never_printed"] = true;
    workers.push_back(std::move(entry));
  }
  return json_text(json{{"host", request.node.host},
                        {"first", request.node.ranks.first},
                        {"last", request.node.ranks.last},
                        {"workers", std::move(workers)},
                        {"unwind", request.unwind},
                        {"each", request.each.count()},
                        {"all", request.all.count()},
                        {"longest", request.longest}});
}

Result<LookRequest> decode_request(std::string_view text) {
  try {
    const json object = parse_json(text);
    LookRequest request;
    request.node = {object.at("host").get<std::string>(),
                    {object.at("first").get<int>(), object.at("last").get<int>()}};
    for (const json& entry : object.at("workers"))
      request.workers.push_back({entry.at("rank").get<int>(), entry.at("pid").get<pid_t>(),
                                 silence_of(entry), entry.value("never_printed", false)});
    request.unwind = object.at("unwind").get<bool>();
    request.each = milliseconds(object.at("each").get<std::int64_t>());
    request.all = milliseconds(object.at("all").get<std::int64_t>());
    request.longest = object.at("longest").get<std::size_t>();
    return request;
  } catch (const json::exception&) {
    return Error(std::make_error_code(std::errc::bad_message), "not a request for stacks");
  }
}

std::string encode(const stacks::Sample& sample) {
  json object{{"rank", sample.rank},     {"kind", sample.kind},
              {"name", sample.name},     {"state", std::string(1, sample.state)},
              {"wait", sample.wait},     {"call", sample.call},
              {"frames", sample.frames}, {"problem", sample.problem}};
  if (sample.silence) object["silence"] = sample.silence->count();
  if (sample.never_printed) object["never_printed"] = true;
  if (sample.awaited) object["awaited"] = true;
  return json_text(object);
}

std::optional<stacks::Sample> decode_sample(std::string_view line) {
  try {
    const json object = parse_json(line);
    stacks::Sample sample;
    sample.rank = object.at("rank").get<int>();
    sample.kind = object.at("kind").get<stacks::Kind>();
    sample.name = object.at("name").get<std::string>();
    sample.state = object.at("state").get<std::string>().at(0);
    sample.wait = object.at("wait").get<std::string>();
    sample.call = object.at("call").get<std::string>();
    sample.frames = object.at("frames").get<std::vector<std::string>>();
    sample.problem = object.at("problem").get<std::string>();
    sample.silence = silence_of(object);
    sample.never_printed = object.value("never_printed", false);
    sample.awaited = object.value("awaited", false);
    return sample;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace drun::launcher
