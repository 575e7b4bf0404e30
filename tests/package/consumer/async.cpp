// Uses the asynchronous client with nothing but the installed headers and libraries, and Asio.
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include <asio/io_context.hpp>
#include <drun/store/async_client.hpp>
#include <drun/store/server.hpp>

int main() {
  drun::store::Server server;
  const auto bound = server.add_listener({"127.0.0.1", 0}, drun::store::Table::Job);
  if (!bound) {
    std::fprintf(stderr, "%s\n", bound.error().what().c_str());
    return 1;
  }
  std::thread thread([&] { server.run(); });

  asio::io_context io;
  std::string answer = "no answer";
  drun::store::AsyncClient client(io, *bound);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  client.connect(deadline, [&](const drun::Status& connected) {
    if (!connected) {
      answer = connected.error().what();
      return io.stop();
    }
    client.set("greeting", "hello", nullptr);
    client.get("greeting", [&](drun::Result<std::string> value) {
      answer = value ? *value : value.error().what();
      io.stop();
    });
  });
  io.run();
  server.stop();
  thread.join();
  std::printf("%s\n", answer.c_str());
  return answer == "hello" ? 0 : 1;
}
