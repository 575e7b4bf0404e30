#include "launcher/services/pmi_service.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>

#include "base/log.hpp"
#include "launcher/pmi/pmi_node.hpp"
#include "launcher/services/node_exchange.hpp"
#include "launcher/services/pmi_space.hpp"

namespace drun::launcher {
class PmiService::Round : public std::enable_shared_from_this<Round> {
 public:
  Round(asio::io_context& io, const rendezvous::Assignment& assignment, pmi::World world,
        OnFault on_fault)
      : io_(io),
        on_fault_(std::move(on_fault)),
        nodes_(io, assignment, "pmi", "--framework mpi"),
        sockets_(static_cast<std::size_t>(world.local_size)),
        node_(std::move(world)) {}

  FileDescriptor connect(int local_rank) {
    int pair[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
      throw std::system_error(errno, std::generic_category(),
                              "make the socket pair of --framework mpi");
    FileDescriptor theirs(pair[1]);
    socket(local_rank) = std::make_unique<asio::posix::stream_descriptor>(io_, pair[0]);
    wait(local_rank);
    return theirs;
  }

  // For an exchange that begins with the round.
  void act() { (void)act(-1); }

  std::optional<RankFault> at_end(int local_rank, bool success) {
    // Its last words may not have been looked at.
    auto fault = read(local_rank);
    socket(local_rank).reset();
    if (fault || !success) return fault;
    if (const auto warning = node_.warning_at_end(local_rank))
      log::warning("--framework mpi: {}", *warning);
    const auto middle = node_.ended(local_rank);
    return middle ? std::optional(RankFault{middle->exit_code, middle->cause}) : std::nullopt;
  }

 private:
  using Socket = std::unique_ptr<asio::posix::stream_descriptor>;

  Socket& socket(int local_rank) { return sockets_[static_cast<std::size_t>(local_rank)]; }

  void wait(int local_rank) {
    socket(local_rank)
        ->async_wait(asio::posix::descriptor_base::wait_read,
                     [weak = weak_from_this(), local_rank](asio::error_code cancelled) {
                       const auto self = weak.lock();
                       if (cancelled || !self || !self->socket(local_rank)) return;
                       if (const auto fault = self->read(local_rank))
                         self->tell(local_rank, *fault);
                       if (self->socket(local_rank)) self->wait(local_rank);
                     });
  }

  // Takes what has come from this worker. Its fault, if that is one.
  std::optional<RankFault> read(int local_rank) {
    std::array<char, 4'096> bytes;
    // A client waits for each answer, so this much is all there is.
    for (int part = 0; part < 4 && socket(local_rank); ++part) {
      const auto size =
          ::recv(socket(local_rank)->native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (size < 0 && (errno == EAGAIN || errno == EINTR)) break;
      if (size <= 0) {
        socket(local_rank).reset();
        break;
      }
      node_.receive(local_rank, {bytes.data(), static_cast<std::size_t>(size)});
      if (auto fault = act(local_rank)) return fault;
    }
    return std::nullopt;
  }

  // Does what the node wants. The fault of this worker is the caller's to tell.
  std::optional<RankFault> act(int local_rank) {
    std::optional<RankFault> result;
    for (auto wanted = node_.take(); something(wanted); wanted = node_.take()) {
      for (const auto& reply : wanted.replies)
        send(reply);
      if (wanted.exchange) exchange(std::move(*wanted.exchange));
      for (auto& fault : wanted.faults) {
        // It is heard no more; if it waited for an answer and got an end, it would blame that.
        silent_.push_back(std::move(socket(fault.local_rank)));
        RankFault told{fault.exit_code, std::move(fault.cause)};
        if (fault.local_rank == local_rank)
          result = std::move(told);
        else
          tell(fault.local_rank, told);
      }
    }
    return result;
  }
  // From the loop: whoever asked for this may be in the middle of something else.
  void tell(int local_rank, const RankFault& fault) {
    asio::post(io_, [weak = weak_from_this(), local_rank, fault] {
      if (const auto self = weak.lock()) self->on_fault_(local_rank, fault);
    });
  }
  static bool something(const pmi::Wanted& wanted) {
    return !wanted.replies.empty() || wanted.exchange || !wanted.faults.empty();
  }

  void send(const pmi::Reply& reply) {
    if (!socket(reply.local_rank)) return;
    const auto sent = ::send(socket(reply.local_rank)->native_handle(), reply.bytes.data(),
                             reply.bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    // It has gone; or it asks without reading the answers.
    if (sent < 0 && errno != EAGAIN) return socket(reply.local_rank).reset();
    if (sent < static_cast<ssize_t>(reply.bytes.size()))
      node_.refuse(reply.local_rank, "broke PMI-1 by not reading the answers");
  }

  void exchange(pmi::Exchange wanted) {
    nodes_.begin(wanted.number, std::move(wanted.text),
                 [this](const std::vector<std::string>& texts) {
                   node_.exchanged(texts);
                   (void)act(-1);
                 });
  }

  asio::io_context& io_;
  const OnFault on_fault_;
  NodeExchange nodes_;
  std::vector<Socket> silent_;
  std::vector<Socket> sockets_;  // by local rank; null: not connected, or heard no more
  pmi::Node node_;
};

PmiService::PmiService(asio::io_context& io, std::string run_id, OnFault on_fault)
    : io_(io), run_id_(std::move(run_id)), on_fault_(std::move(on_fault)) {}

PmiService::~PmiService() = default;

void PmiService::begin(const rendezvous::Assignment& assignment, int workers) {
  pmi::World world;
  world.space = pmi_space(run_id_, assignment);
  world.local_size = workers;
  world.world_size = assignment.world_size;
  world.nodes = assignment.group_world_size;
  round_ = std::make_shared<Round>(io_, assignment, std::move(world), on_fault_);
  round_->act();
}

FileDescriptor PmiService::connect(int local_rank) {
  return round_->connect(local_rank);
}

std::optional<RankFault> PmiService::at_end(int local_rank, bool success) {
  return round_ ? round_->at_end(local_rank, success) : std::nullopt;
}

void PmiService::end() {
  round_.reset();
}

}  // namespace drun::launcher
