#include "etcd/etcd_messages.hpp"

#include <map>
#include <utility>

#include "base/base64.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/whole_number.hpp"

namespace drun::etcd {
namespace {

using Json = nlohmann::json;
using rendezvous::Change;

constexpr std::size_t kLongestText = 300;

std::string to_text(const Json& json) {
  return json_text(json);
}

// The gateway writes 64-bit numbers as text, because JavaScript has none.
std::string number(std::int64_t value) {
  return std::to_string(value);
}

// The first key behind all that begin with `prefix`; "\0", etcd's word for the end, if there is
// none.
std::string prefix_end(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && end.back() == '\xff')
    end.pop_back();
  if (end.empty()) return std::string(1, '\0');
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

Json keys_json(std::string_view key, bool prefix) {
  Json json = {{"key", base64(key)}};
  if (prefix) json["range_end"] = base64(prefix_end(key));
  return json;
}

Json compare_json(const std::string& key, const std::optional<std::string>& expected,
                  const char* result = "EQUAL") {
  Json json = {{"key", base64(key)}, {"result", result}};
  if (expected) {
    json["target"] = "VALUE";
    json["value"] = base64(*expected);
  } else {
    json["target"] = "VERSION";
    json["version"] = "0";
  }
  return json;
}

Json put_json(const std::string& key, const std::string& value, LeaseId lease) {
  Json put = {{"key", base64(key)}, {"value", base64(value)}};
  if (lease != 0) put["lease"] = number(lease);
  return {{"request_put", std::move(put)}};
}

Json look_json(const std::string& key) {
  return Json::array({{{"request_range", {{"key", base64(key)}}}}});
}

Error malformed(const char* what) {
  return Error(std::make_error_code(std::errc::bad_message),
               std::string("it sent a malformed ") + what);
}

// ---- reading: a field that is not there has its zero, as everywhere in protobuf ----

const Json* find(const Json& json, const char* name) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(name);
  return found == json.end() ? nullptr : &*found;
}

bool read_number(const Json& json, const char* name, std::int64_t& out) {
  const Json* field = find(json, name);
  if (field == nullptr) return true;
  if (field->is_number_integer()) {
    out = field->get<std::int64_t>();
    return true;
  }
  if (!field->is_string()) return false;
  const auto value = whole_number<std::int64_t>(field->get_ref<const std::string&>());
  out = value.value_or(out);
  return value.has_value();
}

bool read_flag(const Json& json, const char* name) {
  const Json* field = find(json, name);
  return field != nullptr && field->is_boolean() && field->get<bool>();
}

std::string read_text(const Json& json, const char* name) {
  const Json* field = find(json, name);
  return field != nullptr && field->is_string() ? field->get<std::string>() : std::string();
}

bool read_bytes(const Json& json, const char* name, std::string& out) {
  auto bytes = from_base64(read_text(json, name));
  if (!bytes) return false;
  out = std::move(*bytes);
  return true;
}

bool read_header(const Json& json, std::int64_t* revision, std::int64_t* term) {
  const Json* header = find(json, "header");
  if (header == nullptr) return false;
  return (revision == nullptr || read_number(*header, "revision", *revision)) &&
         (term == nullptr || read_number(*header, "raft_term", *term));
}

bool read_entry(const Json& json, Change& change) {
  std::string value;
  if (!json.is_object() || !read_bytes(json, "key", change.key) ||
      !read_bytes(json, "value", value))
    return false;
  change.value = std::move(value);
  return true;
}

bool read_entries(const Json& json, std::vector<Change>& entries) {
  const Json* list = find(json, "kvs");
  if (list == nullptr) return true;
  if (!list->is_array()) return false;
  for (const Json& each : *list) {
    if (!read_entry(each, entries.emplace_back())) return false;
  }
  return true;
}

bool read_lease(const Json& json, LeaseAnswer& answer) {
  return read_header(json, nullptr, &answer.term) && read_number(json, "ID", answer.lease) &&
         read_number(json, "TTL", answer.seconds);
}

// In a watch's stream, one transaction's events have one revision and come together.
bool read_events(const Json& list, WatchAnswer& answer) {
  if (!list.is_array()) return false;
  std::int64_t last = -1;
  for (const Json& event : list) {
    const Json* entry = find(event, "kv");
    Change change;
    std::int64_t revision = 0;
    if (entry == nullptr || !read_entry(*entry, change) ||
        !read_number(*entry, "mod_revision", revision))
      return false;
    if (read_text(event, "type") == "DELETE") change.value.reset();
    if (revision != last) answer.changes.emplace_back();
    last = revision;
    answer.changes.back().push_back(std::move(change));
  }
  return true;
}

Refusal refusal_of(const Json& json) {
  Refusal refusal;
  std::int64_t code = 0;
  (void)(read_number(json, "code", code) && read_number(json, "grpc_code", code));
  refusal.code = static_cast<int>(code);
  refusal.text = read_text(json, "message");
  if (refusal.text.empty()) refusal.text = read_text(json, "error");
  refusal.text = shown(refusal.text);
  return refusal;
}

// There an error is an object of its own, as a rule.
Refusal refusal_in_stream(const Json& json) {
  const Json* error = find(json, "error");
  return refusal_of(error != nullptr && error->is_object() ? *error : json);
}

}  // namespace

std::string shown(std::string_view text) {
  std::string line = printable(text.substr(0, kLongestText));
  if (text.size() > kLongestText) line += "...";
  return line;
}

std::string authenticate_request(const std::string& user, const std::string& password) {
  return to_text({{"name", user}, {"password", password}});
}

std::string grant_request(LeaseId lease, std::int64_t seconds) {
  return to_text({{"ID", number(lease)}, {"TTL", number(seconds)}});
}

std::string lease_request(LeaseId lease) {
  return to_text({{"ID", number(lease)}});
}

std::string range_request(std::string_view key, bool prefix) {
  return to_text(keys_json(key, prefix));
}

std::string presence_request(std::string_view key) {
  Json json = keys_json(key, false);
  json["count_only"] = true;
  return to_text(json);
}

std::string watch_request(std::string_view key, bool prefix, std::int64_t from) {
  Json create = keys_json(key, prefix);
  create["start_revision"] = number(from);
  return to_text({{"create_request", std::move(create)}});
}

std::string commit_request(const rendezvous::Transaction& transaction, const Fence& fence,
                           LeaseId session, LeaseId job) {
  Json compare = Json::array({compare_json(fence.key, fence.value)});
  for (const auto& guard : transaction.guards)
    compare.push_back(compare_json(guard.key, guard.expected));
  std::map<std::string_view, const rendezvous::Write*> last;
  for (const auto& write : transaction.writes)
    last[write.key] = &write;
  Json success = Json::array();
  for (const auto& write : transaction.writes) {
    if (last[write.key] != &write) continue;
    if (write.value) {
      success.push_back(put_json(write.key, *write.value, write.ephemeral ? session : job));
    } else {
      success.push_back({{"request_delete_range", keys_json(write.key, false)}});
    }
  }
  return to_text({{"compare", std::move(compare)},
                  {"success", std::move(success)},
                  {"failure", look_json(fence.key)}});
}

std::string fence_request(const Fence& fence, bool create, LeaseId session) {
  Json compare =
      create ? compare_json(fence.key, std::nullopt) : compare_json(fence.key, fence.value, "LESS");
  // "Less" of etcd compares what the key holds with what is given here.
  return to_text({{"compare", Json::array({std::move(compare)})},
                  {"success", Json::array({put_json(fence.key, fence.value, session)})},
                  {"failure", look_json(fence.key)}});
}

std::optional<Refusal> read_refusal(std::string_view body) {
  const Json json = parse_json(body);
  if (!json.is_object()) return std::nullopt;
  Refusal refusal = refusal_in_stream(json);
  if (refusal.text.empty()) return std::nullopt;
  return refusal;
}

Result<std::string> read_token(std::string_view body) {
  const Json json = parse_json(body);
  std::string token = read_text(json, "token");
  // It becomes a line of a header.
  if (token.empty() || token != printable(token)) return malformed("answer to a user's name");
  return token;
}

Result<LeaseAnswer> read_grant(std::string_view body) {
  const Json json = parse_json(body);
  LeaseAnswer answer;
  if (!read_lease(json, answer) || answer.lease == 0 || answer.seconds <= 0)
    return malformed("lease");
  return answer;
}

Result<LeaseAnswer> read_keep_alive(std::string_view body) {
  const Json json = parse_json(body);
  LeaseAnswer answer;
  if (find(json, "error") != nullptr)
    return Error(std::make_error_code(std::errc::protocol_error),
                 "it says: " + refusal_in_stream(json).text);
  const Json* result = find(json, "result");
  if (result == nullptr || !read_lease(*result, answer)) return malformed("answer about a lease");
  return answer;
}

Result<RangeAnswer> read_range(std::string_view body) {
  const Json json = parse_json(body);
  RangeAnswer answer;
  if (!read_header(json, &answer.revision, &answer.term) || answer.revision <= 0 ||
      !read_number(json, "count", answer.count) || !read_entries(json, answer.entries))
    return malformed("list of keys");
  return answer;
}

Result<TransactionAnswer> read_transaction(std::string_view body) {
  const Json json = parse_json(body);
  TransactionAnswer answer;
  if (!read_header(json, nullptr, &answer.term)) return malformed("answer to a transaction");
  answer.succeeded = read_flag(json, "succeeded");
  if (answer.succeeded) return answer;
  const Json* list = find(json, "responses");
  const Json* range = list != nullptr && list->is_array() && list->size() == 1
                          ? find((*list)[0], "response_range")
                          : nullptr;
  std::vector<Change> entries;
  if (range == nullptr || !read_entries(*range, entries))
    return malformed("answer to a transaction");
  if (!entries.empty()) answer.fence = std::move(entries.front().value);
  return answer;
}

Result<WatchAnswer> read_watch(std::string_view line) {
  const Json json = parse_json(line);
  WatchAnswer answer;
  if (find(json, "error") != nullptr) {
    answer.canceled = true;
    answer.reason = refusal_in_stream(json).text;
    return answer;
  }
  const Json* result = find(json, "result");
  if (result == nullptr) return malformed("event");
  std::int64_t compacted = 0;
  answer.canceled = read_flag(*result, "canceled");
  answer.reason = shown(read_text(*result, "cancel_reason"));
  if (!read_number(*result, "compact_revision", compacted)) return malformed("event");
  answer.compacted = compacted > 0;
  const Json* events = find(*result, "events");
  if (events != nullptr && !read_events(*events, answer)) return malformed("event");
  return answer;
}

}  // namespace drun::etcd
