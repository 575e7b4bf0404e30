// Uses the asynchronous client with nothing but the installed headers and libraries, and Asio.
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include <asio/buffer.hpp>
#include <asio/error.hpp>
#include <asio/io_context.hpp>
#include <asio/local/connect_pair.hpp>
#include <asio/local/stream_protocol.hpp>
#include <drun/store/async_client.hpp>
#include <drun/store/server.hpp>

// This file has Asio inline and the library has it compiled: they must share its error categories.
bool knows_the_end_of_a_stream(asio::io_context& io) {
  asio::local::stream_protocol::socket reader(io), writer(io);
  asio::local::connect_pair(reader, writer);
  writer.close();
  char byte = 0;
  std::error_code error;
  reader.read_some(asio::buffer(&byte, 1), error);
  return error == asio::error::eof;
}

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
  if (!knows_the_end_of_a_stream(io)) std::printf("an end of a stream that Asio does not know\n");
  return answer == "hello" && knows_the_end_of_a_stream(io) ? 0 : 1;
}
