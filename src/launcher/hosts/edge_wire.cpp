#include "launcher/hosts/edge_wire.hpp"

#include <algorithm>
#include <utility>

#include "base/exit_codes.hpp"
#include "base/split.hpp"
#include "base/whole_number.hpp"

namespace drun::launcher::hosts {
namespace {

// The length of the payload and the host in four bytes each, the lowest first, and the type.
constexpr std::size_t kHeader = 9;
// Texts of a branch before its launcher.
constexpr std::size_t kBranchHead = 4;

Error malformed(const char* what) {
  return Error(std::make_error_code(std::errc::protocol_error), what);
}

void add_number(std::string& to, std::uint32_t number) {
  for (int shift = 0; shift < 32; shift += 8)
    to += static_cast<char>((number >> shift) & 0xffU);
}

std::uint32_t number_at(std::string_view bytes) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i)
    number |= std::uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return number;
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
  add_number(bytes, static_cast<std::uint32_t>(frame.payload.size()));
  add_number(bytes, frame.host);
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

std::optional<std::string> FrameReader::copy_wanted() {
  const auto mark = awaits_mark_ ? bytes_.find(kCopyMark) : std::string::npos;
  if (mark == std::string::npos) return std::nullopt;
  const auto begin = mark + kCopyMark.size();
  const auto end = bytes_.find('\n', begin);
  if (end == std::string::npos) return std::nullopt;
  std::string machine = bytes_.substr(begin, end - begin);
  bytes_.erase(0, end + 1);
  return machine;
}

std::optional<Frame> FrameReader::next() {
  if (awaits_mark_ || broken_ || bytes_.size() - at_ < kHeader) return std::nullopt;
  const std::string_view header = std::string_view(bytes_).substr(at_, kHeader);
  const std::size_t size = number_at(header);
  const auto type = static_cast<FrameType>(header[8]);
  if (size > kMostPayload || type < FrameType::Alive || type > FrameType::Copying) {
    broken_ = true;
    return std::nullopt;
  }
  if (bytes_.size() - at_ - kHeader < size) return std::nullopt;
  Frame frame{type, number_at(header.substr(4)), bytes_.substr(at_ + kHeader, size)};
  at_ += kHeader + size;
  return frame;
}

std::string pack(const Hello& hello) {
  std::string payload;
  for (const std::string* text :
       {&hello.version, &hello.address, &hello.port, &hello.host_name, &hello.no_tls})
    add(payload, *text);
  return payload;
}

Result<Hello> unpack_hello(std::string_view payload) {
  auto texts = texts_of(payload);
  if (!texts || texts->size() < 4) return malformed("a greeting that is none");
  Hello hello{std::move((*texts)[0]), std::move((*texts)[1]), std::move((*texts)[2]),
              std::move((*texts)[3])};
  // Older versions say nothing of it, and must be told apart from what is no drun.
  if (texts->size() > 4) hello.no_tls = std::move((*texts)[4]);
  return hello;
}

std::string pack(const Branch& branch) {
  std::string payload;
  add(payload, branch.drun);
  add(payload, std::to_string(branch.fan_out));
  add(payload, branch.copy_self ? "1" : "0");
  add(payload, std::to_string(branch.launcher.size()));
  for (const std::string& word : branch.launcher)
    add(payload, word);
  for (const Target& target : branch.targets) {
    add(payload, std::to_string(target.host));
    add(payload, target.name);
  }
  return payload;
}

Result<Branch> unpack_branch(std::string_view payload) {
  auto texts = texts_of(payload);
  if (!texts || texts->size() < kBranchHead) return malformed("a branch that is none");
  const auto fan_out = whole_number<std::size_t>((*texts)[1]);
  const auto words = whole_number<std::size_t>((*texts)[3]);
  if (!fan_out || *fan_out == 0 || !words || *words == 0 || *words > texts->size() - kBranchHead ||
      (texts->size() - kBranchHead - *words) % 2 != 0)
    return malformed("a branch that is none");
  Branch branch;
  branch.drun = std::move((*texts)[0]);
  branch.fan_out = *fan_out;
  branch.copy_self = (*texts)[2] == "1";
  const auto launcher = texts->begin() + kBranchHead;
  const auto targets = launcher + static_cast<std::ptrdiff_t>(*words);
  branch.launcher.assign(launcher, targets);
  for (auto at = targets; at != texts->end(); at += 2) {
    const auto host = whole_number<std::uint32_t>(*at);
    if (!host) return malformed("a branch with a host that has no number");
    branch.targets.push_back({*host, std::move(at[1])});
  }
  return branch;
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

int unpack_exit_code(std::string_view payload) {
  const auto code = whole_number<int>(payload);
  return code && *code >= 0 && *code <= 255 ? *code : kDrunFailed;
}

std::vector<std::vector<Target>> branches_of(const std::vector<Target>& targets,
                                             std::size_t fan_out) {
  const std::size_t count = std::min(targets.size(), fan_out);
  std::vector<std::vector<Target>> branches;
  auto begin = targets.begin();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t size = targets.size() / count + (i < targets.size() % count ? 1 : 0);
    branches.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(size));
    begin += static_cast<std::ptrdiff_t>(size);
  }
  return branches;
}

}  // namespace drun::launcher::hosts
