#include "launcher/hosts/edge_wire.hpp"

#include <utility>

#include "base/split.hpp"
#include "base/whole_number.hpp"

namespace drun::launcher::hosts {
namespace {

// The length of the payload in four bytes, the lowest first, and the type.
constexpr std::size_t kHeader = 5;

Error malformed(const char* what) {
  return Error(std::make_error_code(std::errc::protocol_error), what);
}

void add(std::string& to, std::string_view text) {
  to += text;
  to += '\0';
}

// Every text ends in a zero byte. Nullopt: the last one does not.
std::optional<std::vector<std::string>> texts_of(std::string_view payload) {
  if (!payload.empty() && payload.back() != '\0') return std::nullopt;
  std::vector<std::string> texts;
  while (!payload.empty())
    texts.emplace_back(take_until(payload, '\0'));
  return texts;
}

}  // namespace

std::string encode(const Frame& frame) {
  std::string bytes;
  bytes.reserve(kHeader + frame.payload.size());
  for (int shift = 0; shift < 32; shift += 8)
    bytes += static_cast<char>((frame.payload.size() >> shift) & 0xffU);
  bytes += static_cast<char>(frame.type);
  return bytes + frame.payload;
}

void FrameReader::take(std::string_view bytes) {
  bytes_.erase(0, std::exchange(at_, 0));
  bytes_ += bytes;
  if (!awaits_mark_) return;
  const auto mark = bytes_.find(kEdgeMark);
  if (mark == std::string::npos) {
    broken_ = bytes_.size() > kMostNoise;
    return;
  }
  awaits_mark_ = false;
  at_ = mark + kEdgeMark.size();
}

std::optional<Frame> FrameReader::next() {
  if (awaits_mark_ || broken_ || bytes_.size() - at_ < kHeader) return std::nullopt;
  std::size_t size = 0;
  for (std::size_t i = 0; i < 4; ++i)
    size |= std::size_t{static_cast<unsigned char>(bytes_[at_ + i])} << (8 * i);
  const auto type = static_cast<FrameType>(bytes_[at_ + 4]);
  if (size > kMostPayload || type < FrameType::Alive || type > FrameType::Ended) {
    broken_ = true;
    return std::nullopt;
  }
  if (bytes_.size() - at_ - kHeader < size) return std::nullopt;
  Frame frame{type, bytes_.substr(at_ + kHeader, size)};
  at_ += kHeader + size;
  return frame;
}

std::string pack(const Hello& hello) {
  std::string payload;
  for (const std::string* text : {&hello.version, &hello.address, &hello.port, &hello.host_name})
    add(payload, *text);
  return payload;
}

Result<Hello> unpack_hello(std::string_view payload) {
  auto texts = texts_of(payload);
  if (!texts || texts->size() < 4) return malformed("a greeting that is none");
  return Hello{std::move((*texts)[0]), std::move((*texts)[1]), std::move((*texts)[2]),
               std::move((*texts)[3])};
}

std::string pack(const Order& order) {
  std::string payload;
  add(payload, order.directory);
  add(payload, order.grace);
  add(payload, std::to_string(order.arguments.size()));
  for (const auto* texts : {&order.arguments, &order.environment})
    for (const std::string& text : *texts)
      add(payload, text);
  return payload;
}

Result<Order> unpack_order(std::string_view payload) {
  auto texts = texts_of(payload);
  if (!texts || texts->size() < 3) return malformed("an order that is none");
  const auto count = whole_number<std::size_t>((*texts)[2]);
  if (!count || *count == 0 || *count > texts->size() - 3)
    return malformed("an order without a command");
  const auto begin = texts->begin() + 3;
  const auto end = begin + static_cast<std::ptrdiff_t>(*count);
  Order order;
  order.directory = std::move((*texts)[0]);
  order.grace = std::move((*texts)[1]);
  order.arguments.assign(begin, end);
  order.environment.assign(end, texts->end());
  return order;
}

}  // namespace drun::launcher::hosts
