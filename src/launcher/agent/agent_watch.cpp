#include "launcher/agent/agent_watch.hpp"

#include <chrono>
#include <utility>

#include "base/addresses.hpp"
#include "base/log.hpp"
#include "drun/base/endpoint.hpp"
#include "launcher/agent/agent_settings.hpp"
#include "launcher/agent/own_status.hpp"
#include "launcher/job_stacks/page_stacks.hpp"
#include "secure/token_source.hpp"

namespace drun::launcher {

AgentWatch::AgentWatch(const Parts& parts, const std::optional<rlimit>& open_files)
    : parts_(parts),
      hangs_({parts_.io, parts_.options, parts_.workers, parts_.participant, parts_.events,
              parts_.status, parts_.stacks, parts_.news}),
      facts_(parts_.io, parts_.options, open_files,
             [this](std::string sheet) { on_facts(std::move(sheet)); }),
      job_(parts_.io, parts_.options.run_id),
      usage_(
          parts_.io, parts_.host_name,
          [this]() -> const WorkerGroup& { return parts_.workers.group(); }, parts_.gpus),
      gpus_({parts_.io, [this]() -> const WorkerGroup& { return parts_.workers.group(); },
             parts_.gpus},
            tells_usage(parts_.options)),
      door_(parts_.io, parts_.options.run_id, answers()),
      key_door_(parts_.io),
      watchers_(
          parts_.io, parts_.options, parts_.host_name, parts_.workers.group(), parts_.gpus,
          parts_.events.memory(), [this] { return own(); },
          [this](PageStacks::Done done) { parts_.stacks.tell(std::move(done)); }) {}

void AgentWatch::start() {
  hangs_.start();
  door_.open();
  if (parts_.options.token_is_made) open_key_door();
  watchers_.open();
}

void AgentWatch::cancel() {
  hangs_.cancel();
  door_.close();
  key_door_.close();
  job_.cancel();
  usage_.cancel();
  gpus_.cancel();
  facts_.cancel();
  watchers_.close();
}

void AgentWatch::open_key_door() {
  key_door_.open(parts_.options.run_id, parts_.options.tls->secret(), [this] {
    const auto store = parts_.backend.moved_to();
    return store ? to_string(*store) : meeting_place(parts_.options);
  });
}

status::AgentStatus AgentWatch::own() const {
  auto own = own_status(parts_.options, parts_.host_name, parts_.workers, parts_.status,
                        parts_.participant);
  own.behind = hangs_.behind();
  own.collective = hangs_.collective();
  if (const auto store = parts_.backend.moved_to()) own.store = to_string(*store);
  return own;
}

StatusDoor::Answers AgentWatch::answers() {
  StatusDoor::Answers answers;
  answers.status = [this] { return own(); };
  answers.stacks = [this](bool whole_job, bool unwind, const StatusDoor::Say& say) {
    parts_.stacks.answer(whole_job, unwind, say);
  };
  answers.job = [this](StatusDoor::Say say) { job_.ask(std::move(say)); };
  answers.usage = [this](StatusDoor::Say say) {
    gpus_.sample([this, say = std::move(say)] { usage_.ask(say); });
  };
  return answers;
}

void AgentWatch::on_facts(std::string sheet) {
  parts_.participant.set_facts(std::move(sheet), std::chrono::steady_clock::now());
  parts_.news();
}

void AgentWatch::set_link(rendezvous::KeyValue* link) {
  watchers_.set_link(link);
  job_.set_link(link);
}

// The one who hosts the store says it, once. A user who knows it says --token-file none.
void AgentWatch::tell_whether_open(const NodeIdentity& node) {
  const Options& options = parts_.options;
  const std::string& host = options.endpoint.host;
  if (!node.hosting || options.tls != nullptr || options.max_nodes == 1 || told_open_ ||
      options.local_node >= 0 || options.backend == Backend::Etcd ||
      options.token_file == secure::kNoTokenFile || host == "localhost" ||
      is_loopback_address(host))
    return;
  told_open_ = true;
  log::info(
      "whoever reaches {} can change this job; a token closes it: --token-file FILE, the same on "
      "all nodes; --token-file none: not to be told",
      meeting_place(options));
}

void AgentWatch::joined(const NodeIdentity& node) {
  tell_whether_open(node);
  facts_.gather(node);
  set_link(&parts_.backend.key_value());
  if (parts_.options.max_nodes > 1) parts_.stacks.use_store(parts_.backend.key_value());
  hangs_.use_store(parts_.backend.key_value(), node.ticket);
}

void AgentWatch::dropped() {
  set_link(nullptr);
  forget_store();
}

void AgentWatch::forget_store() {
  parts_.stacks.forget_store();
  hangs_.forget_store();
}

void AgentWatch::job_over() {
  forget_store();
  gpus_.cancel();
}

bool AgentWatch::on_event(const rendezvous::KeyValueEvent& event) {
  return watchers_.on_event(event) || job_.on_event(event) || parts_.stacks.on_event(event);
}

void AgentWatch::on_workers(const GroupNews& news) {
  watchers_.on_workers(news);
  gpus_.on_workers(news);
  // Not before: it is not needed for the start, and takes its time.
  if (news.started) parts_.stacks.listen();
}

}  // namespace drun::launcher
