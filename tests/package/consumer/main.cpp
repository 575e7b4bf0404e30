// Serves a store and uses it, with nothing but the installed headers and libraries.
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include <drun/store/client.hpp>
#include <drun/store/server.hpp>

int main() {
  drun::store::Server server;
  const auto bound = server.add_listener({"127.0.0.1", 0}, drun::store::Table::Job);
  if (!bound) {
    std::fprintf(stderr, "%s\n", bound.error().what().c_str());
    return 1;
  }
  const drun::Endpoint endpoint = *bound;
  std::thread thread([&] { server.run(); });

  std::string answer = "no connection";
  auto client = drun::store::Client::connect(
      endpoint, std::chrono::steady_clock::now() + std::chrono::seconds(10));
  if (client && client->set("greeting", "hello").ok()) {
    auto value = client->get("greeting", std::chrono::seconds(10));
    answer = value ? *value : value.error().what();
  }
  server.stop();
  thread.join();
  std::printf("%s\n", answer.c_str());
  return answer == "hello" ? 0 : 1;
}
