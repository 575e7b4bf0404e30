// drun's own words on other hosts. The agents of a job say much alike, and its user is to read it
// once: so an agent that another drun has started puts marks around its words on stderr, that drun
// takes them out of what the workers print there, and the starter shows what is news. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace drun::launcher::hosts {

// Around a text of drun's own; empty: it stands there as it is.
struct WordMarks {
  std::string begin;
  std::string end;

  bool operator==(const WordMarks&) const = default;
};

// An agent is told its marks by this variable, which no worker gets: what a worker prints is none
// of drun's words.
inline constexpr std::string_view kWordsVariable = "DRUN_OWN_WORDS";

// `secret` makes them like no other text.
[[nodiscard]] WordMarks word_marks(std::string_view secret);
// Those that `environment` tells of, if it does; without the variable afterwards.
[[nodiscard]] WordMarks take_word_marks(std::vector<std::string>& environment);
[[nodiscard]] std::string marked(const WordMarks& marks, std::string_view text);

// An agent's stderr, in any pieces.
class WordsReader {
 public:
  struct Piece {
    bool own = false;  // drun's own words: a whole text
    std::string bytes;

    bool operator==(const Piece&) const = default;
  };
  explicit WordsReader(WordMarks marks) : marks_(std::move(marks)) {}
  // What may be told apart by now.
  [[nodiscard]] std::vector<Piece> take(std::string_view bytes);
  // What is left when nothing more comes.
  [[nodiscard]] std::vector<Piece> rest();

 private:
  [[nodiscard]] std::size_t possible_begin() const;

  WordMarks marks_;
  std::string bytes_;
  bool inside_ = false;
};

// Which words of which host are news: those that no host has said so often yet.
class SaidWords {
 public:
  // So many texts are remembered.
  explicit SaidWords(std::size_t texts = 4096) : most_(texts) {}
  [[nodiscard]] bool is_news(std::uint32_t host, std::string_view text);

 private:
  struct Said {
    std::uint32_t times = 0;
    std::unordered_map<std::uint32_t, std::uint32_t> by_host;
  };
  std::size_t most_;
  std::unordered_map<std::size_t, Said> texts_;  // by their hashes
  std::deque<std::size_t> order_;
};

}  // namespace drun::launcher::hosts
