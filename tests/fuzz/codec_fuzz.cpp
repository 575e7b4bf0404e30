// Fuzz target: bytes to messages of both protocols, and back.
//
// Input: u8 what is decoded, u8 where it is cut, bytes. What was decoded must encode to the very
// bytes it came from, and must come out alike however the bytes arrive.
#include "fuzz/fuzz.hpp"
#include "store/protocol/control_protocol.hpp"
#include "store/protocol/tcpstore_codec.hpp"

namespace drun::fuzz {
namespace {

namespace control = store::control;
namespace tcpstore = store::tcpstore;
using store::Limits;
using store::TcpStoreVersion;
using tcpstore::Decoder;

Limits small_limits() {
  Limits limits;
  limits.key_bytes = 100;
  limits.value_bytes = 2000;
  limits.keys_per_request = 16;
  limits.request_bytes = 4000;
  return limits;
}
const Limits kLimits = small_limits();

void detect(std::string_view bytes) {
  using Status = tcpstore::Detection::Status;
  Status decided = Status::NeedMore;
  TcpStoreVersion version = TcpStoreVersion::Torch1_13;
  for (std::size_t size = 0; size <= bytes.size() && size <= 20; ++size) {
    const tcpstore::Detection found = tcpstore::detect_version(bytes.substr(0, size), kLimits);
    require(found.consumed <= size, "no more is consumed than there is");
    require(size < 9 || found.status != Status::NeedMore, "nine bytes are enough");
    if (decided != Status::NeedMore)
      require(found.status == decided && found.version == version, "a decision is final");
    decided = found.status;
    version = found.version;
  }
}

// First only a part of `bytes`, then all: the outcome is that of `whole`.
void decode_in_two(Decoder split, const Decoder& whole, std::string_view bytes, std::uint8_t cut,
                   const Decoder::Result& result) {
  const std::size_t shorter = cut % bytes.size();
  if (shorter == 0) return;
  tcpstore::Request request;
  const Decoder::Result part = split.next(bytes.substr(0, shorter), kLimits, request);
  if (split.version() != whole.version()) return;  // guessed from what has arrived
  if (part.status != Decoder::Status::NeedMore) {
    require(part.status == result.status && part.size == result.size, "more changes nothing");
    return;
  }
  require(part.size > shorter, "what is needed is more than there is");
  if (result.status == Decoder::Status::Complete)
    require(part.size <= result.size, "never more is needed than the request has");
  const Decoder::Result rest = split.next(bytes, kLimits, request);
  if (split.version() == whole.version())
    require(rest.status == result.status && rest.size == result.size, "split as whole");
}

void decode_requests(TcpStoreVersion version, std::string_view bytes, std::uint8_t cut) {
  Decoder decoder(version);
  while (!bytes.empty()) {
    Decoder whole = decoder;
    tcpstore::Request request;
    const Decoder::Result result = whole.next(bytes, kLimits, request);
    decode_in_two(decoder, whole, bytes, cut, result);
    if (result.status != Decoder::Status::Complete) return;
    require(result.size > 0 && result.size <= bytes.size(), "a request has a size");
    std::string encoded;
    tcpstore::encode(encoded, whole.version(), request);
    require(encoded == bytes.substr(0, result.size), "encodes to what it came from");
    bytes.remove_prefix(result.size);
    decoder = whole;
  }
}

template <typename Message, typename Decode>
void decode_frames(std::string_view bytes, std::uint8_t cut, Decode decode) {
  constexpr std::size_t kLongest = 4000;
  while (true) {
    const control::FrameResult found = control::next_frame(bytes, kLongest);
    if (found.status == control::FrameStatus::NeedMore)
      require(found.size > bytes.size(), "what is needed is more than there is");
    if (found.status != control::FrameStatus::Complete) return;
    const std::string_view frame = bytes.substr(0, found.size);
    const auto part = control::next_frame(frame.substr(0, cut % frame.size()), kLongest);
    require(part.status == control::FrameStatus::NeedMore, "a part is not whole");
    Message message;
    if (decode(found.frame, message) == control::DecodeStatus::Ok) {
      std::string encoded;
      control::encode(encoded, found.frame.request, message);
      require(encoded == frame, "encodes to what it came from");
    }
    bytes.remove_prefix(found.size);
  }
}

// A reply of a server, read by the client in pieces and as a whole.
void read_reply(std::string_view bytes, std::uint8_t cut) {
  using State = tcpstore::ReplyReader::State;
  Source source(bytes);
  const auto shape = static_cast<tcpstore::ReplyShape>(source.u8() % 8);
  const std::size_t count = source.u8() % 20;
  const std::string_view text = source.rest();
  const auto read = [&](std::uint8_t seed, tcpstore::ReplyReader& reader, std::size_t& total) {
    State state = State::NeedMore;
    std::string kept;
    in_pieces(text, seed, [&](std::string_view piece) {
      if (state != State::NeedMore) return;
      kept += piece;
      std::size_t taken = 0;
      state = reader.read(kept, taken);
      require(taken <= kept.size(), "no more is taken than there is");
      kept.erase(0, taken);
      total += taken;
    });
    return state;
  };
  std::size_t whole_size = 0;
  std::size_t split_size = 0;
  tcpstore::ReplyReader whole(shape, count, 2000);
  tcpstore::ReplyReader split(shape, count, 2000);
  const State state = read(0, whole, whole_size);
  require(read(cut, split, split_size) == state, "split as whole");
  if (state != State::Done) return;
  require(whole_size == split_size, "split as whole");
  require(whole.reply().integer == split.reply().integer, "split as whole");
  require(whole.reply().values == split.reply().values, "split as whole");
}

void decode(std::string_view input) {
  Source source(input);
  const std::uint8_t what = source.u8();
  const std::uint8_t cut = source.u8();
  const std::string_view bytes = source.rest();
  switch (what % 8) {
    case 0:
      detect(bytes);
      break;
    case 1:
      decode_requests(TcpStoreVersion::Torch1_13, bytes, cut);
      break;
    case 2:
      decode_requests(TcpStoreVersion::Torch2_1, bytes, cut);
      break;
    case 3:
      decode_requests(TcpStoreVersion::Torch2_2, bytes, cut);
      break;
    case 4:
      decode_frames<control::Request>(bytes, cut, [](const control::Frame& frame, auto& message) {
        return control::decode_request(frame, kLimits.keys_per_request, message);
      });
      break;
    case 5:
      decode_frames<control::Reply>(bytes, cut, [](const control::Frame& frame, auto& message) {
        return control::decode_reply(frame, message);
      });
      break;
    case 6:
      read_reply(bytes, cut);
      break;
    default:
      for (std::size_t size = 0; size <= bytes.size() && size <= control::kOpeningBytes; ++size)
        if (!control::may_be_opening(bytes.substr(0, size))) return;
      if (bytes.size() >= control::kOpeningBytes) {
        const control::Opening opening = control::decode_opening(bytes);
        const auto version = control::choose_version(opening);
        if (version)
          require(opening.lowest <= *version && *version <= opening.highest, "a common version");
      }
  }
}

}  // namespace
}  // namespace drun::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  drun::fuzz::decode(drun::fuzz::as_text(data, size));
  return 0;
}
