#include "launcher/process/channel.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace drun::process {
namespace {

constexpr std::size_t kReadSize = 64U << 10;
constexpr std::size_t kMaxDescriptors = 4;
// Messages without descriptors go out together, up to this many in one system call.
constexpr std::size_t kMaxVectors = 64;

union ControlBuffer {
  cmsghdr align;
  std::array<char, CMSG_SPACE(sizeof(int) * kMaxDescriptors)> bytes;
};

void attach(msghdr& message, ControlBuffer& control,
            const std::vector<FileDescriptor>& descriptors) {
  if (descriptors.empty()) return;
  control.bytes.fill(0);
  message.msg_control = control.bytes.data();
  message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
  int numbers[kMaxDescriptors] = {};
  for (std::size_t i = 0; i < descriptors.size(); ++i)
    numbers[i] = descriptors[i].get();
  std::memcpy(CMSG_DATA(header), numbers, sizeof(int) * descriptors.size());
}

std::vector<FileDescriptor> detach(msghdr& message) {
  std::vector<FileDescriptor> result;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      result.emplace_back(fd);
    }
  }
  return result;
}

}  // namespace

Channel::Channel(FileDescriptor socket) : socket_(std::move(socket)) {}

void Channel::send(std::string message, std::vector<FileDescriptor> descriptors) {
  Outgoing outgoing;
  outgoing.bytes = std::move(message);
  outgoing.descriptors = std::move(descriptors);
  output_.push_back(std::move(outgoing));
}

bool Channel::flush() {
  while (!output_.empty()) {
    iovec vectors[kMaxVectors];
    std::size_t count = 0;
    for (auto& outgoing : output_) {
      if (count == kMaxVectors || (count > 0 && !outgoing.descriptors.empty())) break;
      const std::size_t skip = count == 0 ? written_ : 0;
      vectors[count].iov_base = outgoing.bytes.data() + skip;
      vectors[count].iov_len = outgoing.bytes.size() - skip;
      ++count;
    }
    msghdr message{};
    ControlBuffer control;
    message.msg_iov = vectors;
    message.msg_iovlen = count;
    attach(message, control, output_.front().descriptors);
    const ssize_t n = ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EINTR) continue;
      // ETOOMANYREFS: too many descriptors are on their way; the other end takes them out.
      return errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM || errno == ETOOMANYREFS;
    }
    output_.front().descriptors.clear();
    written_ += static_cast<std::size_t>(n);
    while (!output_.empty() && written_ >= output_.front().bytes.size()) {
      written_ -= output_.front().bytes.size();
      output_.pop_front();
    }
  }
  return true;
}

// For one read behind the bytes that are unread.
void Channel::make_room() {
  if (input_begin_ == input_end_) input_begin_ = input_end_ = 0;
  if (input_size_ - input_end_ >= kReadSize) return;
  const std::size_t unread = input_end_ - input_begin_;
  if (unread + kReadSize <= input_size_) {
    std::memmove(input_.get(), input_.get() + input_begin_, unread);
  } else {
    input_size_ = std::max(input_size_ * 2, unread + kReadSize);
    auto larger = std::make_unique_for_overwrite<char[]>(input_size_);
    if (unread > 0) std::memcpy(larger.get(), input_.get() + input_begin_, unread);
    input_ = std::move(larger);
  }
  input_begin_ = 0;
  input_end_ = unread;
}

Channel::Fill Channel::fill() {
  make_room();
  iovec vector{input_.get() + input_end_, input_size_ - input_end_};
  msghdr message{};
  ControlBuffer control;
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  ssize_t n = 0;
  do {
    n = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return errno == EAGAIN ? Fill::Empty : Fill::Closed;
  if (n == 0) return Fill::Closed;
  auto descriptors = detach(message);
  if (!descriptors.empty() || (message.msg_flags & MSG_CTRUNC) != 0) {
    DescriptorSet set;
    set.descriptors = std::move(descriptors);
    received_.push_back(std::move(set));
  }
  input_end_ += static_cast<std::size_t>(n);
  return Fill::More;
}

std::optional<GuardianFrame> Channel::next() {
  const std::size_t size = input_end_ - input_begin_;
  wire::Header header;
  if (size < sizeof header) return std::nullopt;
  std::memcpy(&header, input_.get() + input_begin_, sizeof header);
  if (size < sizeof header + header.length) return std::nullopt;
  GuardianFrame frame;
  frame.type = header.type;
  frame.payload = std::string_view(input_.get() + input_begin_ + sizeof header, header.length);
  input_begin_ += sizeof header + header.length;
  if (header.descriptors > 0) {
    if (!received_.empty()) {
      frame.descriptors = std::move(received_.front().descriptors);
      received_.pop_front();
    }
    frame.descriptors_missing = frame.descriptors.size() < header.descriptors;
  }
  return frame;
}

}  // namespace drun::process
