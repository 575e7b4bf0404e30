// What the page's answers are as bytes. Pure.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "launcher/page/http_request.hpp"

namespace drun::launcher {

// Many callers may be sent the same one.
using HttpBody = std::shared_ptr<const std::string>;

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  HttpBody body = std::make_shared<const std::string>();
  std::string headers{};  // more of them: "Allow: GET, HEAD\r\n"
};

[[nodiscard]] inline HttpBody share(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

// A line of text with this status: "no such page".
[[nodiscard]] HttpAnswer plain_answer(int status, std::string_view line);
// For a request that was refused with this status.
[[nodiscard]] HttpAnswer refusal(int status);

// Status line and headers, to be followed by the body unless only the head was asked for. The
// connection ends after it. `now`: for the header Date.
[[nodiscard]] std::string head_of(const HttpAnswer& answer,
                                  std::chrono::system_clock::time_point now);

// Whether a header Accept prefers OpenMetrics to the older text of Prometheus.
[[nodiscard]] bool prefers_open_metrics(std::string_view accept);

// Whether a browser that sends this Host header cannot have been led here by a name of somebody
// else's (DNS rebinding): it is an address, localhost, this machine's name, or missing.
[[nodiscard]] bool is_own_host(std::string_view host, std::string_view own_name);

// Whether a request with this Origin header has been sent by a page of ours, which a browser had
// from this Host, or by no browser: there is none then. Others' pages may send requests here, too.
[[nodiscard]] bool is_own_origin(std::string_view origin, std::string_view host);

// The token of a header Authorization: "Bearer TOKEN". Nullopt: it has none.
[[nodiscard]] std::optional<std::string_view> bearer_of(std::string_view authorization);

}  // namespace drun::launcher
