#include "doctor/check.hpp"

#include <algorithm>
#include <cstddef>
#include <system_error>
#include <utility>

#include "base/json.hpp"
#include "base/printable.hpp"

namespace drun::doctor {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostChecks = 1'000;

Error malformed_checks() {
  return {std::make_error_code(std::errc::bad_message), "a list of checks is malformed"};
}

}  // namespace

Check passed(std::string name, std::string reason) {
  return {Verdict::Pass, std::move(name), std::move(reason), ""};
}

Check warned(std::string name, std::string reason, std::string mend) {
  return {Verdict::Warn, std::move(name), std::move(reason), std::move(mend)};
}

Check failed(std::string name, std::string reason, std::string mend) {
  return {Verdict::Fail, std::move(name), std::move(reason), std::move(mend)};
}

Verdict worst(const std::vector<Check>& checks) {
  Verdict result = Verdict::Pass;
  for (const Check& check : checks)
    result = std::max(result, check.verdict);
  return result;
}

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::Pass:
      return "pass";
    case Verdict::Warn:
      return "warn";
    case Verdict::Fail:
      break;
  }
  return "fail";
}

std::string encode(const std::vector<Check>& checks) {
  Json list = Json::array();
  for (const Check& check : checks)
    list.push_back({{"verdict", name_of(check.verdict)},
                    {"check", check.name},
                    {"reason", check.reason},
                    {"mend", check.mend}});
  return json_text(list);
}

Result<std::vector<Check>> decode_checks(std::string_view text) {
  const Json list = parse_json(text);
  if (!list.is_array() || list.size() > kMostChecks) return malformed_checks();
  std::vector<Check> checks;
  for (const Json& each : list) {
    if (!each.is_object()) return malformed_checks();
    const auto field = [&each](const char* name) {
      const auto found = each.find(name);
      return found != each.end() && found->is_string()
                 ? printable(found->get_ref<const std::string&>())
                 : std::string();
    };
    const std::string verdict = field("verdict");
    checks.push_back({verdict == name_of(Verdict::Pass)   ? Verdict::Pass
                      : verdict == name_of(Verdict::Warn) ? Verdict::Warn
                                                          : Verdict::Fail,
                      field("check"), field("reason"), field("mend")});
  }
  return checks;
}

std::string text_of(const std::vector<Check>& checks) {
  std::size_t width = 0;
  for (const Check& check : checks)
    width = std::max(width, check.name.size());
  std::string text;
  for (const Check& check : checks) {
    text += std::string(name_of(check.verdict)) + "  " + check.name;
    text += std::string(width - check.name.size() + 2, ' ') + check.reason;
    if (!check.mend.empty()) text += "; " + check.mend;
    text += '\n';
  }
  return text;
}

}  // namespace drun::doctor
