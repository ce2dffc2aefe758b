// What FT-CORBA says of a call, without an ORB: what may be sent again (table 23-1), what stands in
// a group's component, and how contexts are written.
//
// What it is not: I/O. Nothing here believes a length before it has been compared with what is
// there, and nothing throws but for lack of memory.
#ifndef QUORBA_FT_RULES_H
#define QUORBA_FT_RULES_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace quorba_ft {
namespace rules {

using Octets = std::vector<std::uint8_t>;

// Service contexts and components (IOP::ServiceId, IOP::ComponentId).
const std::uint32_t FT_GROUP_VERSION = 12;
const std::uint32_t FT_REQUEST = 13;
const std::uint32_t FT_TRANSACTION_DEPTH = 30;
const std::uint32_t FT_FORWARD = 32;
const std::uint32_t TAG_FT_GROUP = 27;
const std::uint32_t TAG_INTERNET_IOP = 0;
const std::uint32_t TAG_MULTIPLE_COMPONENTS = 1;

// What a request says of itself: the columns of table 23-1.
enum class Column {
  Plain,  // no group: omniORB's own rules count
  Group,  // its reference has TAG_FT_GROUP, and it carries no FT_REQUEST
  Named,  // it carries FT_REQUEST
};

enum class Completed { Yes, No, Maybe };

// Whether a request may be sent again after an exception. `of_the_way`: it is COMM_FAILURE,
// TRANSIENT, NO_RESPONSE or OBJ_ADAPTER (struck out by the task force, and harmless).
inline bool may_repeat(Column column, bool of_the_way, Completed completed) {
  if (!of_the_way || completed == Completed::Yes) return false;
  switch (column) {
    case Column::Plain: return false;
    case Column::Group: return completed == Completed::No;
    case Column::Named: return true;
  }
  return false;
}

// Reads CDR. After the first thing that is not there everything is 0, and `is_good` false.
class Reader {
 public:
  Reader(const std::uint8_t* data, std::size_t size, bool little)
      : data_(data), size_(size), little_(little) {}

  // What is in an encapsulation: its first octet tells the byte order.
  static Reader encapsulation(const std::uint8_t* data, std::size_t size) {
    Reader reader(data, size, size > 0 && (data[0] & 1) != 0);
    reader.octet();
    return reader;
  }

  std::uint8_t octet() { return take(1) ? data_[at_ - 1] : 0; }
  std::uint16_t u16() { return static_cast<std::uint16_t>(number(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }

  // A sequence of octets; a string's last one is its zero. It is a part of the data.
  Reader octets(bool encapsulated) {
    const std::uint32_t size = u32();
    if (!take(size)) return Reader(data_, 0, little_);
    const std::uint8_t* begin = data_ + (at_ - size);
    return encapsulated ? encapsulation(begin, size) : Reader(begin, size, little_);
  }

  const std::uint8_t* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::string text() const {
    return std::string(reinterpret_cast<const char*>(data_), size_);
  }
  bool is_good() const { return good_; }

 private:
  bool take(std::size_t count) {
    good_ = good_ && count <= size_ - at_;
    if (good_) at_ += count;
    return good_;
  }

  std::uint64_t number(std::size_t count) {
    const std::size_t beyond = at_ % count;
    if (beyond != 0) take(count - beyond);
    if (!take(count)) return 0;
    std::uint64_t value = 0;
    for (std::size_t nth = 0; nth < count; ++nth) {
      const std::size_t place = little_ ? at_ - 1 - nth : at_ - count + nth;
      value = value << 8 | data_[place];
    }
    return value;
  }

  const std::uint8_t* data_;
  std::size_t size_;
  bool little_;
  std::size_t at_ = 0;
  bool good_ = true;
};

// Which group a reference names, and in which version.
struct Group {
  std::string domain;
  std::uint64_t id = 0;
  std::uint32_t version = 0;

  bool is_same(const Group& other) const { return id == other.id && domain == other.domain; }
};

// The body of a TAG_FT_GROUP component.
inline bool read_group(Reader body, Group& group) {
  const std::uint8_t major = body.octet();
  body.octet();
  group.domain = body.octets(false).text();
  group.id = body.u64();
  group.version = body.u32();
  return body.is_good() && major == 1;
}

// The group in a list of components, if it is there.
inline bool find_group(Reader& components, Group& group) {
  std::uint32_t count = components.u32();
  for (; count > 0 && components.is_good(); --count) {
    const std::uint32_t tag = components.u32();
    Reader body = components.octets(true);
    if (components.is_good() && tag == TAG_FT_GROUP) return read_group(body, group);
  }
  return false;
}

// The group in one profile of a reference, if it names one.
inline bool group_of_profile(std::uint32_t tag, const std::uint8_t* data, std::size_t size,
                             Group& group) {
  Reader profile = Reader::encapsulation(data, size);
  if (tag == TAG_INTERNET_IOP) {
    profile.octet();
    // IIOP 1.0 has no components.
    if (profile.octet() == 0) return false;
    profile.octets(false);
    profile.u16();
    profile.octets(false);
  } else if (tag != TAG_MULTIPLE_COMPONENTS) {
    return false;
  }
  return find_group(profile, group);
}

// The group in a reference, if the whole of it can be read.
inline bool group_of_reference(Reader reference, Group& group) {
  bool is_found = false;
  reference.octets(false);
  for (std::uint32_t count = reference.u32(); count > 0 && reference.is_good(); --count) {
    const std::uint32_t tag = reference.u32();
    const Reader data = reference.octets(false);
    is_found = is_found || group_of_profile(tag, data.data(), data.size(), group);
  }
  return is_found && reference.is_good();
}

// Writes an encapsulation, always in little endian.
class Writer {
 public:
  Writer() : data_(1, 1) {}

  void u32(std::uint32_t value) { number(value, 4); }
  void u64(std::uint64_t value) { number(value, 8); }
  void text(const std::string& value) {
    u32(static_cast<std::uint32_t>(value.size() + 1));
    data_.insert(data_.end(), value.begin(), value.end());
    data_.push_back(0);
  }
  const Octets& data() const { return data_; }

 private:
  void number(std::uint64_t value, std::size_t count) {
    while (data_.size() % count != 0) data_.push_back(0);
    for (std::size_t nth = 0; nth < count; ++nth) {
      data_.push_back(static_cast<std::uint8_t>(value >> (8 * nth)));
    }
  }

  Octets data_;
};

inline Octets ft_request(const std::string& client, std::int32_t retention,
                         std::uint64_t expiration) {
  Writer writer;
  writer.text(client);
  writer.u32(static_cast<std::uint32_t>(retention));
  writer.u64(expiration);
  return writer.data();
}

// FT_GROUP_VERSION, and FT_TRANSACTION_DEPTH.
inline Octets one_number(std::uint32_t value) {
  Writer writer;
  writer.u32(value);
  return writer.data();
}

}  // namespace rules
}  // namespace quorba_ft

#endif
