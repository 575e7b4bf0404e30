#include "launcher/page/http_answer.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <optional>

#include "base/addresses.hpp"
#include "base/lower_case.hpp"
#include "base/split.hpp"
#include "base/trimmed.hpp"
#include "base/whole_number.hpp"
#include "drun/base/endpoint.hpp"

namespace drun::launcher {
namespace {

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 421:
      return "Misdirected Request";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Error";
  }
}

std::string_view explanation(int status) {
  switch (status) {
    case 405:
      return "only GET and HEAD: nothing can be changed here";
    case 408:
      return "no request came in time";
    case 413:
      return "a request has no body here";
    case 421:
      return "ask for this page by an address, localhost or this machine's name";
    case 431:
      return "the request is too long";
    case 505:
      return "HTTP/1.0 and HTTP/1.1 are spoken here";
    default:
      return "not a request of HTTP/1.1";
  }
}

// The page is one file, which asks the place that it came from and nobody else. No other site may
// read, embed or frame what is here.
constexpr std::string_view kSafety =
    "Cache-Control: no-store\r\n"
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Connection: close\r\n";

// "Sun, 06 Nov 1994 08:49:37 GMT", in whatever language the process runs.
std::string date_text(std::chrono::system_clock::time_point now) {
  constexpr std::array kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                               "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm time{};
  ::gmtime_r(&seconds, &time);
  std::array<char, 32> rest{};
  std::string text = kDays.at(static_cast<std::size_t>(time.tm_wday));
  (void)std::strftime(rest.data(), rest.size(), ", %d ", &time);
  text += rest.data();
  text += kMonths.at(static_cast<std::size_t>(time.tm_mon));
  (void)std::strftime(rest.data(), rest.size(), " %Y %H:%M:%S GMT", &time);
  return text + rest.data();
}

// "0.75" as 750; what is no weight counts as none.
int weight_of(std::string_view text) {
  if (text == "1" || text.starts_with("1.")) return 1'000;
  if (!text.starts_with("0")) return 0;
  text.remove_prefix(1);
  if (text.empty()) return 0;
  if (text.front() != '.') return 0;
  std::string digits(text.substr(1, 3));
  digits.resize(3, '0');
  return whole_number<int>(digits).value_or(0);
}

// The weight that `accept` gives to this type; nullopt: it does not name it.
std::optional<int> weight_in(std::string_view accept, std::string_view type) {
  std::optional<int> result;
  while (!accept.empty()) {
    std::string_view entry = take_until(accept, ',');
    if (lower_case(trimmed(take_until(entry, ';'))) != type) continue;
    int weight = 1'000;
    while (!entry.empty()) {
      const std::string_view parameter = trimmed(take_until(entry, ';'));
      if (parameter.starts_with("q=") || parameter.starts_with("Q="))
        weight = weight_of(parameter.substr(2));
    }
    result = std::max(result.value_or(0), weight);
  }
  return result;
}

}  // namespace

HttpAnswer plain_answer(int status, std::string_view line) {
  HttpAnswer answer;
  answer.status = status;
  answer.body = share(std::string(line) + "\n");
  return answer;
}

HttpAnswer refusal(int status) {
  HttpAnswer answer = plain_answer(status, explanation(status));
  if (status == 405) answer.headers = "Allow: GET, HEAD\r\n";
  return answer;
}

std::string head_of(const HttpAnswer& answer, std::chrono::system_clock::time_point now) {
  std::string text = "HTTP/1.1 " + std::to_string(answer.status) + " ";
  text += reason_of(answer.status);
  text += "\r\nDate: " + date_text(now) + "\r\nContent-Type: " + answer.type +
          "\r\nContent-Length: " + std::to_string(answer.body->size()) + "\r\n";
  text += answer.headers;
  text += kSafety;
  return text + "\r\n";
}

bool prefers_open_metrics(std::string_view accept) {
  const int open = weight_in(accept, "application/openmetrics-text").value_or(0);
  return open > 0 && open >= weight_in(accept, "text/plain").value_or(0);
}

bool is_own_host(std::string_view host, std::string_view own_name) {
  if (host.empty()) return true;
  const auto endpoint = parse_endpoint(host, 80);
  if (!endpoint) return false;
  const std::string asked = lower_case(endpoint->host);
  if (!numeric_addresses(asked).empty()) return true;
  const std::string own = lower_case(own_name);
  // Nobody of elsewhere can own a name without a domain.
  return asked == own || asked == own.substr(0, own.find('.'));
}

bool is_own_origin(std::string_view origin, std::string_view host) {
  if (origin.empty()) return true;
  // A proxy before the page may speak TLS.
  for (const std::string_view scheme : {"http://", "https://"})
    if (origin.starts_with(scheme))
      return lower_case(origin.substr(scheme.size())) == lower_case(host);
  return false;
}

std::optional<std::string_view> bearer_of(std::string_view authorization) {
  const std::string_view scheme = take_until(authorization, ' ');
  const std::string_view token = trimmed(authorization, " ");
  if (lower_case(scheme) != "bearer" || token.empty()) return std::nullopt;
  return token;
}

}  // namespace drun::launcher
