#include <chrono>
#include <limits>
#include <system_error>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/utc_text.hpp"
#include "base/utf8.hpp"
#include "drun/events/event.hpp"

namespace drun::events {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kSecond = 1'000'000'000;

// Sizes are checked so that a line of an event with texts of the longest kind still fits.
std::string bounded(const std::string& text) {
  return std::string(cut_utf8(printable(text), kLongestText));
}

void put(ordered_json& object, const Event& event, const Field& field) {
  const std::string name(field.name);
  if (const auto* number = std::get_if<std::int64_t Event::*>(&field.member)) {
    object[name] = event.*(*number);
  } else {
    object[name] = bounded(event.*std::get<std::string Event::*>(field.member));
  }
}

bool take(const ordered_json& object, Event& event, const Field& field) {
  const auto found = object.find(field.name);
  if (found == object.end()) return true;
  if (const auto* number = std::get_if<std::int64_t Event::*>(&field.member)) {
    const bool fits =
        found->is_number_integer() &&
        (!found->is_number_unsigned() ||
         found->get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()});
    if (fits) event.*(*number) = found->get<std::int64_t>();
    return fits;
  }
  if (!found->is_string()) return false;
  event.*std::get<std::string Event::*>(field.member) = found->get<std::string>();
  return true;
}

// As rfc3339() writes it; false: another text.
bool take_time(const std::string& text, std::int64_t& time_ns) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, used = 0;
  long long nanoseconds = 0;
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%9lldZ%n", &year, &month, &day, &hour,
                  &minute, &second, &nanoseconds, &used) != 7 ||
      static_cast<std::size_t>(used) != text.size() || used != 30)
    return false;
  using namespace std::chrono;
  const year_month_day date{std::chrono::year(year), std::chrono::month(unsigned(month)),
                            std::chrono::day(unsigned(day))};
  if (!date.ok() || year < 1970 || year > 2261) return false;
  const auto days = sys_days(date).time_since_epoch().count();
  time_ns = (((days * 24LL + hour) * 60 + minute) * 60 + second) * kSecond + nanoseconds;
  return true;
}

}  // namespace

std::string text_of(const Event& event, const Field& field) {
  if (const auto* number = std::get_if<std::int64_t Event::*>(&field.member))
    return std::to_string(event.*(*number));
  return bounded(event.*std::get<std::string Event::*>(field.member));
}

std::string rfc3339(std::int64_t time_ns) {
  return utc_text(time_ns);
}

std::string to_json(const Event& event) {
  const KindInfo& info = info_of(event.kind);
  ordered_json object{{"event", info.name}, {"time", rfc3339(event.time_ns)}};
  for (const Field& field : common_fields())
    put(object, event, field);
  for (const Field& field : info.fields)
    put(object, event, field);
  const auto text = [&object] { return json_text(object, true); };
  std::string line = text();
  // Escapes make texts longer: "\u4e2d" is six bytes for three.
  for (std::size_t most = kLongestText / 2; line.size() >= kLongestLine; most /= 2) {
    for (auto& value : object)
      if (value.is_string())
        value = std::string(cut_utf8(value.get_ref<const std::string&>(), most));
    line = text();
  }
  return line;
}

Result<Event> parse_event(std::string_view line) {
  const auto malformed = [](const std::string& why) {
    return Error(std::make_error_code(std::errc::bad_message), "no event of drun's: " + why);
  };
  const auto object = parse_ordered_json(line);
  if (!object.is_object()) return malformed("it is no JSON object");
  const auto named = object.find("event");
  if (named == object.end() || !named->is_string()) return malformed("it has no \"event\"");
  const auto kind = kind_of(named->get_ref<const std::string&>());
  if (!kind) return malformed("the event is not known");
  Event event;
  event.kind = *kind;
  if (const auto time = object.find("time"); time != object.end())
    if (!time->is_string() || !take_time(time->get_ref<const std::string&>(), event.time_ns))
      return malformed("\"time\" is none");
  for (const auto fields : {common_fields(), info_of(*kind).fields})
    for (const Field& field : fields)
      if (!take(object, event, field))
        return malformed("\"" + std::string(field.name) + "\" has another type");
  return event;
}

}  // namespace drun::events
