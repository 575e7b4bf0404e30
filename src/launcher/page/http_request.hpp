// Reads one HTTP/1.1 request, strictly: GET, HEAD and POST, no body, nothing that two readers could
// understand differently. Pure: bytes in, a request out.
//
// None of the libraries that Debian has would do: cpp-httplib and civetweb block in threads of
// their own, Beast is Boost.Asio's and not Asio's, and libmicrohttpd is a shared library that a
// program without any would have to find on every node. What is left of HTTP without bodies,
// persistent connections and other methods is the page below.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

namespace drun::launcher {

struct HttpRequest {
  bool head = false;   // HEAD: the same answer without its body
  bool post = false;   // POST: something is to be done
  std::string path;    // "/metrics": begins with a slash; as it was sent, nothing is decoded
  std::string query;   // "ranks=1"; may be empty
  std::string host;    // as in the header of that name; empty: there is none
  std::string accept;  // likewise
  std::string origin;  // likewise: a browser says there whose page has sent it
  // Likewise: "Bearer TOKEN". Not for any log.
  std::string authorization;
};

// Whether a query has this part: "ranks=1".
[[nodiscard]] bool has_part(std::string_view query, std::string_view part);

// The status to refuse a request with: 400, 405, 413, 431, 505.
struct HttpRefusal {
  int status = 400;
};

class HttpReader {
 public:
  static constexpr std::size_t kLongest = 8'192;  // bytes of the request line and the headers
  static constexpr int kMostHeaders = 64;

  // monostate: more is needed. What follows a request is not looked at: it is the connection's
  // only one. Not to be called again after a request or a refusal.
  using Step = std::variant<std::monostate, HttpRequest, HttpRefusal>;
  [[nodiscard]] Step take(std::string_view bytes);

 private:
  std::string head_;
};

}  // namespace drun::launcher
