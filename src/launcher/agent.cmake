drun_add_library(agent
  SOURCES agent.cpp agent_settings.cpp agent_signals.cpp agent_voice.cpp local_nodes.cpp master_port.cpp open_files.cpp outcome_report.cpp port_holder.cpp
          private_key_value.cpp progress.cpp reader_wait.cpp said_once.cpp serve_on.cpp stop_requests.cpp store_finder.cpp store_host.cpp terminal_input.cpp time_limits.cpp worker_group.cpp
  DEPENDS drun::base drun::store drun::rendezvous drun::process drun::command_line drun::output drun::store_key_value
  PRIVATE_DEPENDS Asio::Asio)
drun_add_program(drun SOURCES main.cpp DEPENDS drun::agent)
