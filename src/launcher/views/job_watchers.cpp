#include "launcher/views/job_watchers.hpp"

namespace drun::launcher {

JobWatchers::JobWatchers(asio::io_context& io, const Options& options, const std::string& host_name,
                         const WorkerGroup& group, const GpuLedger& gpus, const EventMemory& events,
                         const std::function<status::AgentStatus()>& own,
                         const PageStacks::Take& stacks) {
  if (has_status_page(options)) page_.emplace(io, options, host_name, own, events, stacks);
  // Agents of one machine have one file.
  if (!options.metrics_file.empty() && options.local_node <= 0)
    file_.emplace(io, options.metrics_file, options.run_id, own);
  if (options.summary) summary_.emplace(io, options.run_id, host_name, group, gpus);
}

void JobWatchers::open() {
  if (page_) page_->open();
  if (file_) file_->open();
}

void JobWatchers::tell_end(const rendezvous::Outcome& outcome) {
  if (page_) page_->tell_end(outcome);
}

void JobWatchers::close() {
  if (page_) page_->close();
  if (file_) file_->close();
  if (summary_) summary_->close();
}

void JobWatchers::set_link(rendezvous::KeyValue* link) {
  if (page_) page_->set_link(link);
  if (file_) file_->set_link(link);
  if (summary_) summary_->set_link(link);
}

bool JobWatchers::on_event(const rendezvous::KeyValueEvent& event) {
  return (page_ && page_->on_event(event)) || (file_ && file_->on_event(event)) ||
         (summary_ && summary_->on_event(event));
}

void JobWatchers::on_workers(const GroupNews& news) {
  if (summary_) summary_->on_workers(news);
  if (file_ && news.started) file_->on_start();
}

}  // namespace drun::launcher
