#include "launcher/watch/beat_note.hpp"

#include <optional>
#include <utility>

namespace drun::launcher {
namespace {

// Above those of JobStacks.
constexpr rendezvous::RequestId kFirstNote = std::uint64_t{3} << 61;

}  // namespace

void BeatNote::use(rendezvous::KeyValue& store, std::string_view ticket) {
  store_ = &store;
  key_ = keys_.beat_of(ticket);
  written_ = {};
}

void BeatNote::write(const rendezvous::BeatDocument& beat, Time now) {
  // Another round's would be taken for none.
  const bool early = now < written_at_ + rendezvous::kBeatPeriod && written_.round == beat.round;
  if (store_ == nullptr || early || beat == written_) return;
  written_ = beat;
  written_at_ = now;
  rendezvous::Transaction transaction;
  transaction.writes.push_back({key_, encode(beat), true});
  store_->commit(kFirstNote + writes_++, std::move(transaction));
}

void BeatNote::erase() {
  if (store_ == nullptr || written_ == rendezvous::BeatDocument{}) return;
  written_ = {};
  rendezvous::Transaction transaction;
  transaction.writes.push_back({key_, std::nullopt, false});
  store_->commit(kFirstNote + writes_++, std::move(transaction));
}

}  // namespace drun::launcher
