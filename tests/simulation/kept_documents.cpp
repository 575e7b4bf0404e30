// Stands in for documents.cpp and round_documents.cpp in `simulate_fast`: a document's text is the
// number of a value that is kept. JSON is half of the time of a run, and is tested on its own.
#include "simulation/kept_documents.hpp"

#include <cstdlib>
#include <string>
#include <system_error>
#include <vector>

#include "rendezvous/documents.hpp"
#include "rendezvous/history.hpp"

namespace drun::rendezvous {
namespace {

template <typename T>
std::vector<T>& kept() {
  static std::vector<T> values;
  return values;
}

template <typename T>
std::string keep(const T& value) {
  kept<T>().push_back(value);
  return std::to_string(kept<T>().size());
}

template <typename T>
Result<T> find(std::string_view text) {
  const auto number = std::strtoul(std::string(text).c_str(), nullptr, 10);
  if (number == 0 || number > kept<T>().size())
    return Error(std::make_error_code(std::errc::bad_message), "no such document");
  return kept<T>()[number - 1];
}

}  // namespace

std::string encode(const MemberDocument& document) {
  return keep(document);
}
std::string encode(const RoundDocument& document) {
  return keep(document);
}
std::string encode(const AssignmentDocument& document) {
  return keep(document);
}
std::string encode(const LeaderDocument& document) {
  return keep(document);
}
std::string encode(const JobDocument& document) {
  return keep(document);
}
std::string encode(const Outcome& outcome) {
  return keep(outcome);
}

std::string encode(const History& history) {
  return keep(history);
}

Result<MemberDocument> decode_member(std::string_view text) {
  return find<MemberDocument>(text);
}
Result<RoundDocument> decode_round(std::string_view text) {
  return find<RoundDocument>(text);
}
Result<AssignmentDocument> decode_assignment(std::string_view text) {
  return find<AssignmentDocument>(text);
}
Result<LeaderDocument> decode_leader(std::string_view text) {
  return find<LeaderDocument>(text);
}
Result<JobDocument> decode_job(std::string_view text) {
  return find<JobDocument>(text);
}
Result<Outcome> decode_outcome(std::string_view text) {
  return find<Outcome>(text);
}
Result<History> decode_history(std::string_view text) {
  return find<History>(text);
}

}  // namespace drun::rendezvous

namespace drun::simulation {

void forget_documents() {
  rendezvous::kept<rendezvous::MemberDocument>().clear();
  rendezvous::kept<rendezvous::RoundDocument>().clear();
  rendezvous::kept<rendezvous::History>().clear();
  rendezvous::kept<rendezvous::AssignmentDocument>().clear();
  rendezvous::kept<rendezvous::LeaderDocument>().clear();
  rendezvous::kept<rendezvous::JobDocument>().clear();
  rendezvous::kept<rendezvous::Outcome>().clear();
}

}  // namespace drun::simulation
