#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "base/base64.hpp"
#include "base/counted.hpp"
#include "base/json.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "base/standard_streams.hpp"
#include "base/utf8.hpp"
#include "ctl/drunctl.hpp"
#include "drun/store/errors.hpp"
#include "store/client/token_refusal.hpp"

namespace drun::ctl {
namespace {

using Json = nlohmann::ordered_json;

// JSON leaves control characters beyond ASCII as they are.
std::string to_text(const Json& json) {
  return json.dump(-1, ' ', on_terminal()) + "\n";
}

}  // namespace

int unreachable(const Error& error) {
  const bool asks =
      error.code() == store::Errc::WrongToken && error.what().ends_with(store::kAsksForToken);
  log::error("{}{}", error.what(),
             asks ? "; one that drun has made is found on the job's hosts, by its user" : "");
  return kDrunFailed;
}

int failed(const Error& error) {
  log::error("{}", error.what());
  return error.code() == store::Errc::Timeout ? kTimeLimit : kDrunFailed;
}

bool on_terminal() {
  return ::isatty(STDOUT_FILENO) != 0;
}

std::string fitted(std::string_view lines, const TerminalSize& screen) {
  constexpr std::size_t kLeast = 3;  // a line, the one that counts the others, and the cursor's
  if (screen.rows < kLeast || screen.columns == 0) return std::string(lines);
  std::size_t rows = 0;
  std::size_t kept = 0;  // bytes, if one more line is written below
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size() - 1) + 1;
    rows += std::max<std::size_t>(1, (end - at - 1 + screen.columns - 1) / screen.columns);
    if (rows + 1 > screen.rows) {
      const auto left =
          std::count(lines.begin() + static_cast<std::ptrdiff_t>(kept), lines.end(), '\n');
      return std::string(lines.substr(0, kept)) + "... " + counted(left, "more line") + "\n";
    }
    if (rows + 2 <= screen.rows) kept = end;
    at = end;
  }
  return std::string(lines);
}

void print(std::string_view bytes) {
  const Status written = write_standard_output(bytes);
  if (!written && written.error().code() == std::errc::broken_pipe) throw NoReader();
  if (!written) throw std::system_error(written.error().code(), "write to standard output");
}

std::string json_object(const Fields& text_fields,
                        const std::vector<std::pair<std::string, std::int64_t>>& numbers) {
  Json object = Json::object();
  for (const auto& [name, text] : text_fields) {
    if (is_utf8(text)) {
      object[name] = text;
    } else {
      object[name + "_base64"] = base64(text);
    }
  }
  for (const auto& [name, number] : numbers)
    object[name] = number;
  return to_text(object);
}

std::string json_list(const std::vector<std::string>& items) {
  Json list = Json::array();
  for (const std::string& item : items) {
    if (is_utf8(item)) {
      list.push_back(item);
    } else {
      list.push_back({{"base64", base64(item)}});
    }
  }
  return to_text(list);
}

std::string shown(std::string_view bytes) {
  if (!on_terminal()) return std::string(bytes);
  std::string text;
  for (;;) {
    const std::string_view line = bytes.substr(0, bytes.find('\n'));
    text += escaped(line);
    bytes.remove_prefix(line.size());
    if (bytes.empty()) return text;
    text += '\n';
    bytes.remove_prefix(1);
  }
}

}  // namespace drun::ctl
