#include "launcher/agent/own_facts.hpp"

#include <chrono>
#include <utility>

#include "facts/gather.hpp"
#include "launcher/workers/preflight.hpp"

namespace drun::launcher {
namespace {

// Milliseconds are usual. A node that takes longer says that it could not look.
constexpr std::chrono::seconds kLimit{5};

}  // namespace

OwnFacts::OwnFacts(asio::io_context& io, const Options& options,
                   const std::optional<rlimit>& open_files,
                   std::function<void(std::string sheet)> ready)
    : io_(io), options_(options), open_files_(open_files), ready_(std::move(ready)) {}

void OwnFacts::gather(const NodeIdentity& node) {
  if (desk_ != nullptr || !compares_facts(options_)) return;
  desk_ = std::make_unique<FileDesk>(io_, [] {});
  facts::FactsQuery question;
  question.environment = options_.inherited;
  question.address = node.address;
  question.salt = options_.run_id;
  question.open_files = open_files_;
  // A thread that hangs keeps its own.
  const Program& program = options_;
  desk_->ask<facts::Sheet>(
      kLimit,
      [question = std::move(question), program = Program(program)]() mutable {
        ProgramFiles files = program_files(program);
        question.interpreter = std::move(files.interpreter);
        question.files = std::move(files.files);
        return facts::gather(question);
      },
      [this](const Result<facts::Sheet>& sheet) {
        ready_(facts::encode(
            sheet ? *sheet : facts::Sheet{{std::string(facts::kTrouble), sheet.error().what()}}));
      });
}

void OwnFacts::cancel() {
  if (desk_ != nullptr) desk_->cancel();
}

}  // namespace drun::launcher
