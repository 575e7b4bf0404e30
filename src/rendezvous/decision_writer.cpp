#include "rendezvous/decision_writer.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace drun::rendezvous {

void DecisionWriter::write(Decision decision, std::size_t most_writes) {
  auto writes = std::exchange(decision.writes, {});
  decision.writes.emplace_back();  // adopt() only asks whether there were any
  decision_ = std::move(decision);
  state_ = State::Sent;
  for (std::size_t begin = 0; begin < writes.size(); begin += most_writes) {
    const auto end = std::min(writes.size(), begin + most_writes);
    Transaction transaction;
    transaction.guards.push_back(leads_);
    transaction.writes.assign(
        std::make_move_iterator(writes.begin() + static_cast<std::ptrdiff_t>(begin)),
        std::make_move_iterator(writes.begin() + static_cast<std::ptrdiff_t>(end)));
    parts_.push_back(std::move(transaction));
  }
  send_next_part();
}

std::optional<Decision> DecisionWriter::on_taken() {
  if (!parts_.empty()) {
    state_ = State::PartlyTaken;
    send_next_part();
    return std::nullopt;
  }
  state_ = State::Idle;
  return std::exchange(decision_, std::nullopt);
}

void DecisionWriter::drop() {
  decision_.reset();
  parts_.clear();
  state_ = State::Idle;
}

// One after the other: the last part must not take effect if the store has not taken the others.
void DecisionWriter::send_next_part() {
  request_ = outbox_.commit(std::move(parts_.front()));
  parts_.pop_front();
}

}  // namespace drun::rendezvous
