#include "launcher/page/http_request.hpp"

#include <algorithm>
#include <optional>

#include "base/lower_case.hpp"
#include "base/split.hpp"
#include "base/trimmed.hpp"

namespace drun::launcher {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::string_view kVersion = "HTTP/1.1";
constexpr std::string_view kScheme = "http://";
constexpr std::size_t kLongestMethod = 16;

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

// A character of a header's name.
bool is_token(char c) {
  return is_upper(c) || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

// Of a request's target, which has no fragment.
bool is_in_target(char c) {
  return c > 0x20 && c < 0x7f && c != '#';
}

bool is_visible(char c) {
  return c > 0x20 && c < 0x7f;
}

// Of a header's value; bytes above ASCII may stand there, controls may not.
bool is_in_value(char c) {
  return is_visible(c) || c == ' ' || c == '\t' || static_cast<unsigned char>(c) >= 0x80;
}

// Something else speaks here, as TLS: no need to wait for the end of a head.
bool can_be_method(std::string_view head) {
  const std::string_view method = head.substr(0, head.find(' '));
  return method.size() <= kLongestMethod && std::all_of(method.begin(), method.end(), is_upper);
}

bool has_bare_line_feed(std::string_view head, std::size_t from) {
  for (auto at = head.find('\n', from); at != std::string_view::npos; at = head.find('\n', at + 1))
    if (at == 0 || head[at - 1] != '\r') return true;
  return false;
}

// The next line without its end; nullopt: a carriage return stands alone.
std::optional<std::string_view> take_line(std::string_view& rest) {
  const auto end = rest.find(kLineEnd);
  const auto line = rest.substr(0, end);
  rest.remove_prefix(line.size() + kLineEnd.size());
  if (line.find('\r') != std::string_view::npos) return std::nullopt;
  return line;
}

struct Headers {
  std::optional<std::string> host;
  std::optional<std::string> origin;
  std::optional<std::string> authorization;
  std::string accept;
};

// A header that may be there once: two readers could take different ones. False: it was there.
bool set_once(std::optional<std::string>& header, std::string_view value) {
  if (header) return false;
  header = value;
  return true;
}

// "http://localhost:9000/metrics", as to a proxy: a server takes it, too, and the host in it
// counts, whatever the header says (RFC 9112, 3.2.2). Leaves "/metrics". False: it has no host, or
// a name and a password before that.
bool take_absolute(std::string_view& target, std::optional<std::string>& host) {
  target.remove_prefix(kScheme.size());
  host = target.substr(0, target.find_first_of("/?"));
  target.remove_prefix(host->size());
  return !host->empty() && host->find('@') == std::string::npos;
}

// "GET /metrics?ranks=1 HTTP/1.1"; 0 or the status of the refusal. `host`: if the target has one.
int read_request_line(std::string_view line, HttpRequest& request, bool& needs_host,
                      std::optional<std::string>& host) {
  const std::string_view method = take_until(line, ' ');
  std::string_view target = take_until(line, ' ');
  if (lower_case(target.substr(0, kScheme.size())) == kScheme && !take_absolute(target, host))
    return 400;
  const bool no_path = host && !target.starts_with('/');
  if (method.empty() || (!no_path && !target.starts_with('/')) ||
      !std::all_of(target.begin(), target.end(), is_in_target))
    return 400;
  if (line != kVersion && line != "HTTP/1.0")
    return line.starts_with("HTTP/") && line.size() == kVersion.size() ? 505 : 400;
  needs_host = line == kVersion;
  request.head = method == "HEAD";
  request.post = method == "POST";
  if (!request.head && !request.post && method != "GET") return 405;
  std::string_view rest = target;
  request.path = take_until(rest, '?');
  if (no_path) request.path = "/";
  request.query = rest;
  return 0;
}

int read_header(std::string_view line, Headers& headers) {
  const auto colon = line.find(':');
  if (colon == 0 || colon == std::string_view::npos) return 400;
  const std::string name = lower_case(line.substr(0, colon));
  const std::string_view value = trimmed(line.substr(colon + 1), " \t");
  if (!std::all_of(name.begin(), name.end(), is_token) ||
      !std::all_of(value.begin(), value.end(), is_in_value))
    return 400;
  if (name == "host") {
    if (!set_once(headers.host, value)) return 400;
  } else if (name == "origin") {
    if (!set_once(headers.origin, value)) return 400;
  } else if (name == "authorization") {
    if (!set_once(headers.authorization, value)) return 400;
  } else if (name == "accept") {
    headers.accept += (headers.accept.empty() ? "" : ",") + std::string(value);
  } else if (name == "transfer-encoding") {
    return 413;
  } else if (name == "content-length" && value != "0") {
    return 413;
  }
  return 0;
}

HttpReader::Step parse(std::string_view head) {
  HttpRequest request;
  bool needs_host = true;
  const auto first = take_line(head);
  if (!first) return HttpRefusal{400};
  std::optional<std::string> target_host;
  if (const int refused = read_request_line(*first, request, needs_host, target_host); refused != 0)
    return HttpRefusal{refused};
  Headers headers;
  for (int count = 0; !head.empty(); ++count) {
    const auto line = take_line(head);
    if (!line) return HttpRefusal{400};
    if (line->empty()) break;
    if (count == HttpReader::kMostHeaders) return HttpRefusal{431};
    if (const int refused = read_header(*line, headers); refused != 0) return HttpRefusal{refused};
  }
  if (needs_host && !headers.host) return HttpRefusal{400};
  request.host = target_host ? *target_host : headers.host.value_or("");
  request.origin = headers.origin.value_or("");
  request.authorization = headers.authorization.value_or("");
  request.accept = std::move(headers.accept);
  return request;
}

}  // namespace

bool has_part(std::string_view query, std::string_view part) {
  while (!query.empty())
    if (take_until(query, '&') == part) return true;
  return false;
}

HttpReader::Step HttpReader::take(std::string_view bytes) {
  const std::size_t seen = head_.size() < kHeadEnd.size() ? 0 : head_.size() - kHeadEnd.size() + 1;
  head_ += bytes.substr(0, kLongest + 1 - head_.size());
  const auto end = head_.find(kHeadEnd, seen);
  const bool whole = end != std::string::npos && end + kHeadEnd.size() <= kLongest;
  const std::string_view head =
      whole ? std::string_view(head_).substr(0, end + kHeadEnd.size()) : std::string_view(head_);
  if (!can_be_method(head) || has_bare_line_feed(head, seen)) return HttpRefusal{400};
  if (whole) return parse(head);
  if (head_.size() > kLongest) return HttpRefusal{431};
  return {};
}

}  // namespace drun::launcher
