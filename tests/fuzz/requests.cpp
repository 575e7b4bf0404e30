#include "fuzz/requests.hpp"

#include <iterator>

namespace drun::fuzz {
namespace {

namespace control = store::control;
namespace tcpstore = store::tcpstore;

control::OptionalBytes take_optional(Source& source) {
  const std::uint8_t choice = source.u8();
  if (choice % 3 == 0) return std::nullopt;
  return take_value(source);
}

control::Transaction take_transaction(Source& source) {
  control::Transaction transaction;
  const std::uint8_t counts = source.u8();
  for (int left = counts % 3; left > 0; --left) {
    const std::string_view key = take_key(source);
    transaction.guards.push_back({key, take_optional(source)});
  }
  for (int left = counts / 4 % 4; left > 0; --left) {
    const std::string_view key = take_key(source);
    transaction.writes.push_back({key, take_optional(source), source.u8() % 2 == 1});
  }
  return transaction;
}

std::vector<std::string_view> take_keys(Source& source) {
  std::vector<std::string_view> keys;
  for (int left = source.u8() % 5; left > 0; --left)
    keys.push_back(take_key(source));
  return keys;
}

control::Request take_control_request(Source& source, const control::Token& token) {
  using namespace control;
  constexpr int kKinds = 9;
  switch (source.u8() % kKinds) {
    case 0:
      return OpenSession{source.u16(), source.u16()};
    case 1:
      return ResumeSession{source.u8() % 4U, token};
    case 2:
      return Heartbeat{};
    case 3:
      return Goodbye{};
    case 4:
      return Watch{take_key(source), source.u8() % 2 == 1};
    case 5:
      return Unwatch{source.u8() % 16U};
    case 6:
      return Stats{};
    case 8:
      return LastWords{take_key(source)};
    default:
      return take_transaction(source);
  }
}

}  // namespace

std::string_view take_key(Source& source) {
  static constexpr std::string_view kKeys[] = {"",   "a", "ab",    "b",
                                               "/k", "q", "init/", "a key of 16 byte"};
  const std::uint8_t choice = source.u8();
  if (choice < 248) return kKeys[choice % std::size(kKeys)];
  return source.bytes(choice - 247U);
}

std::string_view take_value(Source& source) {
  static constexpr std::string_view kValues[] = {
      "", "1", "-5", "x", " 7 rest", "9223372036854775807", "some value longer than small ones"};
  const std::uint8_t choice = source.u8();
  if (choice < 128) return kValues[choice % std::size(kValues)];
  return source.bytes(choice - 127U);
}

tcpstore::Request take_request(Source& source, store::TcpStoreVersion version) {
  tcpstore::Request request;
  request.op = static_cast<tcpstore::Op>(1 + source.u8() % 18);
  if (!tcpstore::opcode_of(version, request.op)) request.op = tcpstore::Op::GetNumKeys;
  switch (request.op) {
    case tcpstore::Op::Check:
    case tcpstore::Op::Wait:
    case tcpstore::Op::MultiGet:
    case tcpstore::Op::MultiSet:
      request.keys = take_keys(source);
      for (std::size_t i = 0; i < request.keys.size(); ++i)
        request.values.push_back(take_value(source));
      break;
    case tcpstore::Op::Ping:
      request.nonce = source.u16();
      break;
    default:
      request.key = take_key(source);
      request.value = take_value(source);
      if (request.op == tcpstore::Op::CompareSet) request.expected = take_value(source);
      request.number = source.u8() % 8 - 3;
  }
  return request;
}

std::string take_frame(Source& source, const control::Token& token) {
  const std::uint64_t id = source.u8() % 16;
  std::string frame;
  control::encode(frame, id, take_control_request(source, token));
  return frame;
}

std::string take_flood(Source& source, std::size_t value_bytes) {
  constexpr std::uint64_t kFirst = 100;  // ids beyond those of take_frame()
  const std::string_view key = take_key(source);
  const std::uint8_t choice = source.u8();
  std::string frames;
  const std::uint64_t end = kFirst + source.u8() / 2U;
  for (std::uint64_t id = kFirst; id < end; ++id)
    control::encode(frames, id, control::Request(control::Watch{key, choice % 2 == 1}));
  const std::string value(value_bytes, 'v');
  control::Transaction write;
  write.writes.push_back({take_key(source), value, false});
  control::encode(frames, kFirst - 1, control::Request(write));
  return frames;
}

}  // namespace drun::fuzz
