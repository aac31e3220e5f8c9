#include "runtime/processes/messages.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/processes/peer_text.h"

namespace piper::runtime {

namespace {

constexpr std::uint32_t kFirstCode = 1000, kLastCode = 9999;  // of diagnostics

/// Reads a body and checks its bounds.
class BoundedReader {
 public:
  explicit BoundedReader(std::string_view body) : read_(body) {}

  std::uint64_t number(std::uint64_t max) {
    const std::uint64_t value = read_.number();
    fits_ &= value <= max;
    return value;
  }
  std::uint32_t number32(std::uint32_t max = 0xFFFFFFFFu) {
    return static_cast<std::uint32_t>(number(max));
  }
  std::string text(std::size_t max) {
    std::string value = read_.text();
    fits_ &= value.size() <= max;
    return value;
  }
  std::string shown(std::size_t max) { return peer_text(read_.text(), max); }
  /// A number of fixed size, such as a Nonce.
  std::array<unsigned char, 32> bytes() {
    std::array<unsigned char, 32> value{};
    const std::string text = read_.text();
    if (text.size() == value.size()) {
      std::memcpy(value.data(), text.data(), value.size());
    } else {
      fits_ = false;
    }
    return value;
  }
  bool good() const { return fits_ && read_.complete(); }

  /// The value, if the body was read to its end and all of it is within its bounds.
  template <typename T>
  std::optional<T> end(T value) const {
    return good() && read_.at_end() ? std::optional<T>(std::move(value)) : std::nullopt;
  }

 private:
  BodyReader read_;
  bool fits_ = true;
};

void append(Body& to, const ActionLocation& place) {
  to.add(place.action).add(place.file);
  for (const std::uint32_t number : {place.line, place.column, place.end_line, place.end_column})
    to.add(std::uint64_t{number});
}

/// A source range whose positions are not in order becomes no location.
ActionLocation read_place(BoundedReader& from) {
  ActionLocation place;
  place.action = from.shown(kMaxPeerName);
  place.file = from.shown(kMaxPeerMessage);
  for (std::uint32_t* number : {&place.line, &place.column, &place.end_line, &place.end_column})
    *number = from.number32();
  const bool ordered =
      place.line > 0 && place.column > 0 && place.end_column > 0 &&
      std::pair(place.line, place.column) <= std::pair(place.end_line, place.end_column);
  if (!ordered) place.line = place.column = place.end_line = place.end_column = 0;
  return place;
}

std::string_view text_of(const std::array<unsigned char, 32>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void append(Body& to, const std::vector<RankPosition>& positions) {
  const std::size_t count = std::min(positions.size(), kMaxPositions);
  to.add(std::uint64_t{count});
  for (std::size_t n = 0; n < count; ++n) {
    const RankPosition& at = positions[n];
    to.add(std::uint64_t{at.rank}).add(static_cast<std::uint64_t>(at.phase));
    for (const std::uint64_t number : {at.step, at.started, at.ended}) to.add(number);
  }
}

std::vector<RankPosition> read_positions(BoundedReader& from) {
  std::vector<RankPosition> positions;
  for (std::uint64_t n = from.number(kMaxPositions); n > 0 && from.good(); --n) {
    RankPosition at;
    at.rank = from.number32(kMaxProcesses);
    at.phase = static_cast<Phase>(from.number(1));
    for (std::uint64_t* number : {&at.step, &at.started, &at.ended})
      *number = from.number(kMaxCount);
    positions.push_back(at);
  }
  return positions;
}

void append(Body& to, const Report& report) { to.add(report.number).add(report.bytes); }

Report read_report(BoundedReader& from) {
  Report report;
  report.number = from.number(0xFFFFFFFFFFFFFFFFu);
  report.bytes = from.text(kMaxBody);
  return report;
}

}  // namespace

std::string encode(const Opening& opening) { return Body().add(text_of(opening.nonce)).bytes(); }

std::optional<Opening> decode_opening(std::string_view body) {
  BoundedReader read(body);
  return read.end(Opening{read.bytes()});
}

std::string encode(const Answer& answer) {
  return Body().add(text_of(answer.nonce)).add(text_of(answer.proof)).bytes();
}

std::optional<Answer> decode_answer(std::string_view body) {
  BoundedReader read(body);
  Answer answer;
  answer.nonce = read.bytes();
  answer.proof = read.bytes();
  return read.end(answer);
}

std::string encode(const Hello& hello) {
  return Body()
      .add(hello.run)
      .add(std::uint64_t{hello.rank})
      .add(std::uint64_t{hello.world})
      .add(hello.process)
      .add(text_of(hello.proof))
      .bytes();
}

std::optional<Hello> decode_hello(std::string_view body) {
  BoundedReader read(body);
  Hello hello;
  hello.run = read.text(kMaxRunName);
  hello.rank = read.number32(kMaxProcesses);
  hello.world = read.number32(kMaxProcesses);
  hello.process = read.shown(kMaxPeerName);
  hello.proof = read.bytes();
  return read.end(std::move(hello));
}

std::string encode(const Heard& heard) { return Body().add(heard.process).bytes(); }

std::optional<Heard> decode_heard(std::string_view body) {
  BoundedReader read(body);
  return read.end(Heard{read.shown(kMaxPeerName)});
}

std::string encode(const KeyValue& pair) { return Body().add(pair.key).add(pair.value).bytes(); }

std::optional<KeyValue> decode_key_value(std::string_view body) {
  BoundedReader read(body);
  KeyValue pair;
  pair.key = read.text(kMaxKey);
  pair.value = read.text(kMaxBody);
  return read.end(std::move(pair));
}

std::string encode_key(std::string_view key) { return Body().add(key).bytes(); }

std::optional<std::string> decode_key(std::string_view body) {
  BoundedReader read(body);
  return read.end(read.text(kMaxKey));
}

std::string encode_count(std::uint64_t count) { return Body().add(count).bytes(); }

std::optional<std::uint64_t> decode_count(std::string_view body) {
  BoundedReader read(body);
  return read.end(read.number(kMaxCount));
}

std::string encode(const Report& report) {
  Body body;
  append(body, report);
  return body.bytes();
}

std::optional<Report> decode_report(std::string_view body) {
  BoundedReader read(body);
  return read.end(read_report(read));
}

std::string encode(const ForwardedReport& forwarded) {
  Body body;
  body.add(std::uint64_t{forwarded.from});
  append(body, forwarded.report);
  return body.bytes();
}

std::optional<ForwardedReport> decode_forwarded(std::string_view body, std::uint32_t world) {
  BoundedReader read(body);
  ForwardedReport forwarded;
  forwarded.from = read.number32(world - 1);
  forwarded.report = read_report(read);
  return read.end(std::move(forwarded));
}

std::string encode(const Piece& piece) {
  return Body().add(piece.remaining).add(piece.bytes).bytes();
}

std::optional<Piece> decode_piece(std::string_view body) {
  BoundedReader read(body);
  Piece piece;
  piece.remaining = read.number(kMaxCount);
  piece.bytes = read.text(kMaxBody);
  return read.end(std::move(piece));
}

std::string encode(const Failure& failure) {
  Body body;
  body.add(std::uint64_t{failure.code})
      .add(failure.message)
      .add(failure.hint)
      .add(std::uint64_t{failure.rank})
      .add(failure.step ? *failure.step + 1 : 0)
      .add(failure.held_out);
  append(body, failure.place);
  const std::size_t notes = std::min(failure.notes.size(), kMaxNotes);
  body.add(std::uint64_t{notes});
  for (std::size_t n = 0; n < notes; ++n) {
    body.add(failure.notes[n].text);
    append(body, failure.notes[n].place);
  }
  return body.bytes();
}

std::optional<Failure> decode_failure(std::string_view body) {
  BoundedReader read(body);
  Failure failure;
  failure.code = read.number32(kLastCode);
  failure.message = read.shown(kMaxPeerMessage);
  failure.hint = read.shown(kMaxPeerMessage);
  failure.rank = read.number32();
  if (const std::uint64_t step = read.number(kMaxCount)) failure.step = step - 1;
  failure.held_out = read.shown(kMaxPeerMessage);
  failure.place = read_place(read);
  for (std::uint64_t n = read.number(kMaxNotes); n > 0 && read.good(); --n) {
    std::string text = read.shown(kMaxPeerMessage);
    failure.notes.push_back({std::move(text), read_place(read)});
  }
  const bool known = failure.code >= kFirstCode &&
                     (failure.rank <= kMaxProcesses || failure.rank == Failure::kNoRank);
  return known ? read.end(std::move(failure)) : std::nullopt;
}

std::string encode(const std::vector<RankPosition>& positions) {
  Body body;
  append(body, positions);
  return body.bytes();
}

std::optional<std::vector<RankPosition>> decode_positions(std::string_view body) {
  BoundedReader read(body);
  return read.end(read_positions(read));
}

std::string encode(const std::vector<ProcessState>& states) {
  Body body;
  const std::size_t count = std::min(states.size(), kMaxStates);
  body.add(std::uint64_t{count});
  for (std::size_t n = 0; n < count; ++n) {
    body.add(std::uint64_t{states[n].process}).add(states[n].name);
    append(body, states[n].positions);
  }
  return body.bytes();
}

std::optional<std::vector<ProcessState>> decode_states(std::string_view body, std::uint32_t world) {
  BoundedReader read(body);
  std::vector<ProcessState> states;
  for (std::uint64_t n = read.number(kMaxStates); n > 0 && read.good(); --n) {
    ProcessState state;
    state.process = read.number32(world - 1);
    state.name = read.shown(kMaxPeerName);
    state.positions = read_positions(read);
    states.push_back(std::move(state));
  }
  return read.end(std::move(states));
}

}  // namespace piper::runtime
