#include "launcher/process/wire.hpp"

#include <iterator>
#include <utility>
#include <variant>

namespace drun::process::wire {
namespace {

// SpawnFailed goes as its numbers and its text, the other events as they are.
struct SpawnFailedBody {
  WorkerId id = 0;
  std::int32_t error = 0;
};

template <typename T>
std::string plain(Type type, const T& body) {
  return Writer(type, 0).number(body).finish();
}

struct Encoder {
  std::string operator()(const Spawned& e) const { return plain(Type::Spawned, e); }
  std::string operator()(const Exited& e) const { return plain(Type::Exited, e); }
  std::string operator()(const Stopped& e) const { return plain(Type::Stopped, e); }
  std::string operator()(const LeaseOver&) const { return Writer(Type::LeaseOver, 0).finish(); }
  std::string operator()(const GuardianLost&) const { return {}; }
  std::string operator()(const SpawnFailed& e) const {
    SpawnFailedBody body;
    body.id = e.id;
    body.error = e.error;
    return Writer(Type::SpawnFailed, 0).number(body).text(e.attempted).finish();
  }
};

}  // namespace

std::string encode(const SpawnRequest& request) {
  SpawnBody body;
  body.id = request.id;
  body.arguments = static_cast<std::uint32_t>(request.argv.size());
  body.variables = static_cast<std::uint32_t>(request.environment.size());
  body.cpus = static_cast<std::uint32_t>(request.cpu_affinity.size());
  body.memory_nodes = static_cast<std::uint32_t>(request.memory_nodes.size());
  std::uint8_t count = 0;
  const FileDescriptor* const streams[] = {&request.standard_input, &request.standard_output,
                                           &request.standard_error, &request.service};
  for (unsigned i = 0; i < std::size(streams); ++i) {
    if (!streams[i]->valid()) continue;
    body.which = static_cast<std::uint8_t>(body.which | (1U << i));
    ++count;
  }
  Writer writer(Type::Spawn, count);
  writer.number(body);
  for (const auto& argument : request.argv)
    writer.text(argument);
  for (const auto& variable : request.environment)
    writer.text(variable);
  for (const std::int32_t cpu : request.cpu_affinity)
    writer.number(cpu);
  for (const std::int32_t node : request.memory_nodes)
    writer.number(node);
  return writer.finish();
}

std::string encode_environment(const std::vector<std::string>& variables) {
  Writer writer(Type::Environment, 0);
  for (const auto& variable : variables)
    writer.text(variable);
  return writer.finish();
}

std::string encode(const process::Farewell& farewell) {
  Writer writer(Type::Farewell, 0);
  const auto add = [&writer](const std::string& address, const std::string& bytes) {
    writer.number(static_cast<std::uint32_t>(address.size()));
    writer.number(static_cast<std::uint32_t>(bytes.size()));
    writer.bytes(address).bytes(bytes);
  };
  writer.number(static_cast<std::uint32_t>(farewell.key.size()));
  writer.bytes(farewell.key);
  add(farewell.address, farewell.bytes);
  for (const auto& other : farewell.others)
    add(other.address, other.bytes);
  return writer.finish();
}

process::Farewell decode_farewell(std::string_view payload) {
  Reader reader(payload);
  process::Farewell result;
  result.key = reader.bytes(reader.number<std::uint32_t>());
  for (bool first = true; first || !reader.rest().empty(); first = false) {
    const auto address = reader.number<std::uint32_t>();
    const auto bytes = reader.number<std::uint32_t>();
    process::Words words{reader.bytes(address), reader.bytes(bytes)};
    if (!reader.ok()) return {};
    if (first) {
      result.address = std::move(words.address);
      result.bytes = std::move(words.bytes);
    } else {
      result.others.push_back(std::move(words));
    }
  }
  return result;
}

std::string encode(const GuardianEvent& event) {
  return std::visit(Encoder{}, event);
}

std::optional<GuardianEvent> decode_event(Type type, std::string_view payload) {
  Reader reader(payload);
  GuardianEvent event;
  switch (type) {
    case Type::Spawned:
      event = reader.number<Spawned>();
      break;
    case Type::Exited:
      event = reader.number<Exited>();
      break;
    case Type::Stopped:
      event = reader.number<Stopped>();
      break;
    case Type::LeaseOver:
      event = LeaseOver();
      break;
    case Type::SpawnFailed: {
      const auto body = reader.number<SpawnFailedBody>();
      SpawnFailed failed;
      failed.id = body.id;
      failed.error = body.error;
      failed.attempted = reader.text();
      event = failed;
      break;
    }
    default:
      return std::nullopt;
  }
  if (!reader.ok()) return std::nullopt;
  return event;
}

}  // namespace drun::process::wire
