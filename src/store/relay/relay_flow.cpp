#include "store/relay/relay_flow.hpp"

#include <utility>

#include "store/protocol/control_protocol.hpp"

namespace drun::store {
namespace {

// Memory that a flow may keep for the next time.
constexpr std::size_t kKeptBytes = 4 * 1024;

}  // namespace

void RelayFlow::begin_with(std::string_view said, std::string_view heard) {
  to_client_ = heard;
  take(Side::Client, said);
}

void RelayFlow::on_store() {
  if (tls_) engine_ = std::make_unique<secure::TlsEngine>(tls_, secure::TlsEngine::Role::Client);
  store_ = true;
}

bool RelayFlow::lost_store() {
  if (!engine_ || engine_->state() != secure::TlsEngine::State::Handshake) return false;
  store_ = false;
  engine_.reset();
  return true;
}

void RelayFlow::take(Side from, std::string_view bytes) {
  if (from == Side::Client) {
    to_store_ += bytes;
    return look_at_opening();
  }
  if (!has_store()) return;
  if (!engine_)
    to_client_ += bytes;
  else
    engine_->receive(bytes, to_client_);
  if (client_gone_) to_client_.clear();
  if (engine_ && engine_->state() == secure::TlsEngine::State::Failed) fault_ = Fault::Token;
}

// Until it is clear what they are, the first bytes stay here.
void RelayFlow::look_at_opening() {
  if (looked_at_ || to_store_.empty()) return;
  if (!control::may_be_opening(to_store_)) {
    looked_at_ = true;
  } else if (to_store_.size() >= control::kMagic.size()) {
    fault_ = Fault::NoTcpStore;
  }
}

void RelayFlow::end(Side from) {
  ended_[index(from)] = true;
  if (from == Side::Client) looked_at_ = true;  // too few to be a control client's
  if (from == Side::Store && client_gone_) told_[index(Side::Client)] = true;
}

void RelayFlow::lose_client() {
  client_gone_ = true;
  to_client_.clear();
  if (ended_[index(Side::Store)]) told_[index(Side::Client)] = true;
}

bool RelayFlow::wants(Side from) const {
  if (ended_[index(from)] || fault_ != Fault::None) return false;
  if (from == Side::Store) return has_store() && to_client_.empty();
  return to_store_.size() < kAtOnce && (!engine_ || engine_->output().size() < kAtOnce);
}

void RelayFlow::encrypt_some() {
  if (!looked_at_ || to_store_.empty() || !engine_->is_open() || !engine_->output().empty()) return;
  engine_->send(to_store_);
  consume(to_store_, to_store_.size());
}

std::string_view RelayFlow::output(Side to) {
  if (to == Side::Client) return to_client_;
  if (!has_store() || fault_ == Fault::NoTcpStore) return {};
  if (!engine_) return looked_at_ ? std::string_view(to_store_) : std::string_view();
  encrypt_some();
  return engine_->output();
}

void RelayFlow::on_sent(Side to, std::size_t bytes) {
  if (to == Side::Client) return consume(to_client_, bytes);
  if (engine_) return consume(engine_->output(), bytes);
  consume(to_store_, bytes);
}

void RelayFlow::consume(std::string& bytes, std::size_t size) {
  if (size < bytes.size()) {
    bytes.erase(0, size);
  } else if (bytes.capacity() > kKeptBytes) {
    std::string().swap(bytes);
  } else {
    bytes.clear();
  }
}

bool RelayFlow::take_end(Side to) {
  const Side from = to == Side::Client ? Side::Store : Side::Client;
  if (!ended_[index(from)] || told_[index(to)] || !output(to).empty()) return false;
  // One that has ended, and perhaps its TLS with it, takes no more.
  const bool waits = !ended_[index(Side::Store)] && (!is_open() || !to_store_.empty());
  if (to == Side::Store && waits) return false;
  return told_[index(to)] = true;
}

}  // namespace drun::store
