#include "doctor/node_report.hpp"

#include <cstddef>
#include <system_error>

#include "base/json.hpp"
#include "base/printable.hpp"

namespace drun::doctor {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostLinks = 1'000;
constexpr std::size_t kMaxReport = 1'048'576;

Error malformed_report(const std::string& what) {
  return {std::make_error_code(std::errc::bad_message), "a node's report: " + what};
}

std::int64_t number_in(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

std::string text_in_report(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string()
             ? printable(found->get_ref<const std::string&>())
             : std::string();
}

LinkReport link_of(const Json& json) {
  LinkReport link;
  link.to = static_cast<int>(number_in(json, "to"));
  link.error = text_in_report(json, "error");
  link.latency_us = number_in(json, "latency_us");
  link.mbit = number_in(json, "mbit");
  link.path_mtu = static_cast<int>(number_in(json, "path_mtu"));
  link.interface_mtu = static_cast<int>(number_in(json, "interface_mtu"));
  return link;
}

}  // namespace

std::string encode(const NodeReport& report) {
  Json links = Json::array();
  for (const LinkReport& link : report.links)
    links.push_back({{"to", link.to},
                     {"error", link.error},
                     {"latency_us", link.latency_us},
                     {"mbit", link.mbit},
                     {"path_mtu", link.path_mtu},
                     {"interface_mtu", link.interface_mtu}});
  Json json = {{"host", report.host},
               {"sheet", facts::encode(report.sheet)},
               {"checks", encode(report.checks)},
               {"links", std::move(links)}};
  if (report.clock_us) json["clock_us"] = *report.clock_us;
  return json_text(json);
}

Result<NodeReport> decode_report(std::string_view text) {
  if (text.size() > kMaxReport) return malformed_report("it is too long");
  const Json json = parse_json(text);
  if (!json.is_object()) return malformed_report("it is no JSON object");
  const auto raw = [&json](const char* name) {
    const auto found = json.find(name);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  NodeReport report;
  report.host = text_in_report(json, "host");
  auto sheet = facts::decode(raw("sheet"));
  if (!sheet) return sheet.error();
  report.sheet = std::move(*sheet);
  auto checks = decode_checks(raw("checks"));
  if (!checks) return checks.error();
  report.checks = std::move(*checks);
  const auto links = json.find("links");
  if (links == json.end() || !links->is_array() || links->size() > kMostLinks)
    return malformed_report("its links are malformed");
  for (const Json& each : *links) {
    if (!each.is_object()) return malformed_report("a link is malformed");
    report.links.push_back(link_of(each));
  }
  if (json.contains("clock_us")) report.clock_us = number_in(json, "clock_us");
  return report;
}

}  // namespace drun::doctor
