// A gateway that does as a test says, and writes down what it was sent. One thread per connection;
// all end with it.
#ifndef FAKE_GATEWAY_H
#define FAKE_GATEWAY_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "quorba_ft_rules.h"

namespace fake {

using quorba_ft::rules::Octets;
using quorba_ft::rules::Reader;

// Writes CDR in little endian.
struct Encoder {
  Octets data;

  void number(std::uint64_t value, std::size_t count) {
    align(count);
    for (std::size_t nth = 0; nth < count; ++nth) {
      data.push_back(static_cast<std::uint8_t>(value >> (8 * nth)));
    }
  }
  void align(std::size_t count) {
    while (data.size() % count != 0) data.push_back(0);
  }
  void text(const std::string& value) {
    number(value.size() + 1, 4);
    data.insert(data.end(), value.begin(), value.end());
    data.push_back(0);
  }
  void octets(const Octets& value) {
    number(value.size(), 4);
    data.insert(data.end(), value.begin(), value.end());
  }
};

// A request, and the contexts that it carried, as they were.
struct Seen {
  std::string operation;
  std::uint32_t id = 0;
  std::map<std::uint32_t, Octets> contexts;

  bool has(std::uint32_t context) const { return contexts.count(context) != 0; }
  Reader context(std::uint32_t context) const {
    const Octets& data = contexts.at(context);
    return Reader::encapsulation(data.data(), data.size());
  }
  std::uint32_t version() const { return context(quorba_ft::rules::FT_GROUP_VERSION).u32(); }
  // What FT_REQUEST says.
  struct Name {
    std::string client;
    std::int32_t retention;
    std::uint64_t expiration;
    bool operator<(const Name& other) const {
      return client != other.client ? client < other.client : retention < other.retention;
    }
    bool operator==(const Name& other) const {
      return client == other.client && retention == other.retention &&
             expiration == other.expiration;
    }
  };
  Name name() const {
    Reader reader = context(quorba_ft::rules::FT_REQUEST);
    Name name;
    name.client = reader.octets(false).text();
    name.retention = static_cast<std::int32_t>(reader.u32());
    name.expiration = reader.u64();
    return name;
  }
};

struct Deed {
  // Orderly: CloseConnection, which says that the request was not executed.
  enum class What { Answer, Close, Orderly, Raise, RaiseUser, Silence, CutReply };

  What what = What::Answer;
  std::string exception;
  std::uint32_t completed = 0;
  // FT_FORWARD's data.
  Octets forward;

  static Deed of(What what) {
    Deed deed;
    deed.what = what;
    return deed;
  }
  static Deed raise(const std::string& exception, std::uint32_t completed) {
    Deed deed = of(What::Raise);
    deed.exception = "IDL:omg.org/CORBA/" + exception + ":1.0";
    deed.completed = completed;
    return deed;
  }
};

class Gateway {
 public:
  static const std::uint32_t NAMES = 5000;

  using Script = std::function<Deed(const Seen&)>;

  explicit Gateway(Script script) : script_(script), listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    if (listener_ < 0 || bind(listener_, any, size) != 0 || listen(listener_, 64) != 0 ||
        getsockname(listener_, any, &size) != 0) {
      throw std::runtime_error("no port to listen on");
    }
    port = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }

  ~Gateway() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      is_over_ = true;
      shutdown(listener_, SHUT_RDWR);
      for (int socket : open_) shutdown(socket, SHUT_RDWR);
    }
    acceptor_.join();
    for (std::thread& thread : threads_) thread.join();
    close(listener_);
  }

  std::vector<Seen> seen() {
    std::lock_guard<std::mutex> lock(mutex_);
    return seen_;
  }

  std::uint16_t port = 0;
  // So many LocateRequests are not answered; to be set before the first one.
  int closes_at_locate = 0;

 private:
  void accept_all() {
    for (;;) {
      const int socket = accept(listener_, nullptr, nullptr);
      std::lock_guard<std::mutex> lock(mutex_);
      if (socket < 0 || is_over_) {
        if (socket >= 0) close(socket);
        return;
      }
      open_.insert(socket);
      threads_.emplace_back([this, socket] {
        while (serve(socket)) {
        }
        std::lock_guard<std::mutex> lock(mutex_);
        open_.erase(socket);
        close(socket);
      });
    }
  }

  static bool fill(int socket, std::uint8_t* to, std::size_t count) {
    while (count > 0) {
      const ssize_t got = recv(socket, to, count, 0);
      if (got <= 0) return false;
      to += got;
      count -= static_cast<std::size_t>(got);
    }
    return true;
  }

  static void send_message(int socket, std::uint8_t type, Octets message, std::size_t left_out) {
    const std::uint8_t head[] = {'G', 'I', 'O', 'P', 1, 2, 1, type};
    std::copy(head, head + sizeof head, message.begin());
    const std::size_t size = message.size() - 12;
    for (std::size_t nth = 0; nth < 4; ++nth) {
      message[8 + nth] = static_cast<std::uint8_t>(size >> (8 * nth));
    }
    message.resize(message.size() - left_out);
    if (send(socket, message.data(), message.size(), MSG_NOSIGNAL) < 0) return;
  }

  static Seen read(const Octets& message) {
    Reader reader(message.data(), message.size(), true);
    for (int nth = 0; nth < 12; ++nth) reader.octet();
    Seen seen;
    seen.id = reader.u32();
    for (int nth = 0; nth < 4; ++nth) reader.octet();
    reader.u16();
    reader.octets(false);
    seen.operation = reader.octets(false).text().c_str();
    for (std::uint32_t count = reader.u32(); count > 0 && reader.is_good(); --count) {
      const std::uint32_t id = reader.u32();
      const std::string data = reader.octets(false).text();
      seen.contexts[id] = Octets(data.begin(), data.end());
    }
    return seen;
  }

  // One message; whether there may be another one.
  bool serve(int socket) {
    Octets message(12);
    if (!fill(socket, message.data(), 12) || message[6] != 1) return false;
    const std::size_t size = Reader(message.data() + 8, 4, true).u32();
    if (size > 1u << 20) return false;
    message.resize(12 + size);
    if (!fill(socket, message.data() + 12, size)) return false;
    Encoder reply;
    reply.data.resize(12);
    if (message[7] == 3) {
      std::unique_lock<std::mutex> lock(mutex_);
      if (closes_at_locate > 0 && closes_at_locate-- > 0) return false;
      lock.unlock();
      reply.number(Reader(message.data() + 12, size, true).u32(), 4);
      reply.number(1, 4);  // it is here
      send_message(socket, 4, reply.data, 0);
      return true;
    }
    if (message[7] != 0) return false;
    const Seen seen = read(message);
    Deed deed;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      seen_.push_back(seen);
      deed = script_(seen);
    }
    if (deed.what == Deed::What::Close) return false;
    if (deed.what == Deed::What::Orderly) {
      send_message(socket, 5, Octets(12), 0);
      return false;
    }
    if (deed.what == Deed::What::Silence) return true;
    answer(socket, seen, deed);
    return deed.what != Deed::What::CutReply;
  }

  static void answer(int socket, const Seen& seen, const Deed& deed) {
    Encoder reply;
    reply.data.resize(12);
    const bool raises = deed.what == Deed::What::Raise;
    reply.number(seen.id, 4);
    const bool raises_user = deed.what == Deed::What::RaiseUser;
    reply.number(raises ? 2 : raises_user ? 1 : 0, 4);
    reply.number(deed.forward.empty() ? 0 : 1, 4);
    if (!deed.forward.empty()) {
      reply.number(quorba_ft::rules::FT_FORWARD, 4);
      reply.octets(deed.forward);
    }
    reply.align(8);
    if (raises_user) {
      reply.text(deed.exception);
    } else if (raises) {
      reply.text(deed.exception);
      reply.number(0, 4);
      reply.number(deed.completed, 4);
    } else if (seen.operation == "accounts") {
      // More than omniORB reads at a time.
      reply.number(NAMES, 4);
      for (std::uint32_t nth = 0; nth < NAMES; ++nth) reply.text("the name of an account");
    } else {
      reply.number(7, 8);  // what `increment` returns
    }
    const bool is_cut = deed.what == Deed::What::CutReply;
    send_message(socket, 1, reply.data, is_cut ? (reply.data.size() - 24) / 2 : 0);
  }

  const Script script_;
  const int listener_;
  std::mutex mutex_;
  std::vector<Seen> seen_;
  std::set<int> open_;
  bool is_over_ = false;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

// A reference of the bank: the octets of an IOR, in little endian.
inline Octets reference(const std::vector<std::uint16_t>& ports, int version) {
  Encoder profile;
  profile.data = {1, 1, 2};
  profile.text("127.0.0.1");
  profile.number(ports.at(0), 2);
  profile.octets({'b', 'a', 'n', 'k'});
  profile.number(ports.size() - 1 + (version >= 0 ? 1 : 0), 4);
  if (version >= 0) {
    Encoder group;
    group.data = {1, 1, 0};
    group.text("tests");
    group.number(7, 8);
    group.number(static_cast<std::uint64_t>(version), 4);
    profile.number(quorba_ft::rules::TAG_FT_GROUP, 4);
    profile.octets(group.data);
  }
  for (std::size_t nth = 1; nth < ports.size(); ++nth) {
    Encoder address;
    address.data = {1};
    address.text("127.0.0.1");
    address.number(ports[nth], 2);
    profile.number(3, 4);  // TAG_ALTERNATE_IIOP_ADDRESS
    profile.octets(address.data);
  }
  Encoder ior;
  ior.text("IDL:Bank/Ledger:1.0");
  ior.number(1, 4);
  ior.number(quorba_ft::rules::TAG_INTERNET_IOP, 4);
  ior.octets(profile.data);
  return ior.data;
}

// The same as text. The octets begin behind the one that tells the byte order, at 4.
inline std::string reference_text(const std::vector<std::uint16_t>& ports, int version) {
  Octets whole = {1, 0, 0, 0};
  const Octets ior = reference(ports, version);
  whole.insert(whole.end(), ior.begin(), ior.end());
  std::string text = "IOR:";
  for (std::uint8_t octet : whole) {
    text += "0123456789abcdef"[octet >> 4];
    text += "0123456789abcdef"[octet & 15];
  }
  return text;
}

}  // namespace fake

#endif
