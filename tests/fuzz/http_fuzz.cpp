// Fuzz target: the reader of the status page's requests.
//
// Input: u8, bytes. The bytes come in the pieces that the first byte says, and must be understood
// as if they had come at once.
#include <cstdio>
#include <string>
#include <variant>

#include "fuzz/fuzz.hpp"
#include "launcher/page/http_answer.hpp"
#include "launcher/page/http_request.hpp"

namespace drun::fuzz {
namespace {

using launcher::HttpReader;
using launcher::HttpRefusal;
using launcher::HttpRequest;

std::string as_text(const HttpReader::Step& step) {
  if (const auto* refused = std::get_if<HttpRefusal>(&step))
    return "refused " + std::to_string(refused->status);
  const auto* request = std::get_if<HttpRequest>(&step);
  if (request == nullptr) return "more";
  return std::string(request->head   ? "HEAD "
                     : request->post ? "POST "
                                     : "GET ") +
         request->path + "?" + request->query + "\n" + request->host + "\n" + request->accept +
         "\n" + request->origin + "\n" + request->authorization;
}

std::string read(std::string_view bytes, std::uint8_t seed) {
  HttpReader reader;
  HttpReader::Step step;
  bool over = false;
  in_pieces(bytes, seed, [&](std::string_view piece) {
    if (over) return;
    step = reader.take(piece);
    over = !std::holds_alternative<std::monostate>(step);
  });
  if (const auto* request = std::get_if<HttpRequest>(&step)) {
    require(request->path.starts_with('/'), "a path begins with a slash");
    require(!request->head || !request->post, "a request has one method");
    for (const std::string& part : {request->path, request->query, request->host, request->accept,
                                    request->origin, request->authorization})
      require(part.find_first_of("\r\n") == std::string::npos, "nothing goes over a line's end");
    (void)launcher::prefers_open_metrics(request->accept);
    (void)launcher::is_own_host(request->host, "node7");
    (void)launcher::is_own_origin(request->origin, request->host);
    if (const auto token = launcher::bearer_of(request->authorization))
      require(!token->empty(), "a token is not empty");
  }
  return as_text(step);
}

}  // namespace
}  // namespace drun::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drun::fuzz;
  Source source(as_text(data, size));
  const std::uint8_t seed = source.u8();
  const std::string_view bytes = source.rest();
  require_same(read(bytes, seed), read(bytes, 0), "the pieces do not matter");
  return 0;
}
