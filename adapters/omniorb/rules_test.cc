// Tests of quorba_ft_rules.h: table 23-1, and what is read from others. Prints nothing if all is
// well.
#include <cstdlib>
#include <iostream>

#include "quorba_ft_rules.h"

using namespace quorba_ft::rules;

namespace {

void check(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "rules_test: it does not hold that " << what << std::endl;
  std::exit(1);
}

void repetitions_are_those_of_table_23_1() {
  const Completed all[] = {Completed::Yes, Completed::No, Completed::Maybe};
  for (Completed completed : all) {
    check(!may_repeat(Column::Plain, true, completed), "plain calls are left alone");
    const bool is_no = completed == Completed::No;
    check(may_repeat(Column::Group, true, completed) == is_no, "groups repeat COMPLETED_NO");
    const bool is_not_done = completed != Completed::Yes;
    check(may_repeat(Column::Named, true, completed) == is_not_done, "named calls are repeated");
    check(!may_repeat(Column::Named, false, completed), "other exceptions are the application's");
  }
}

// An IIOP 1.2 profile with a group component, as big endian if `big`.
Octets profile(bool big) {
  const std::uint8_t little[] = {
      1, 1, 2, 0, 2, 0, 0, 0, 'h', 0, 9, 0, 1, 0, 0, 0, 'k', 0, 0, 0,  // to the key
      1, 0, 0, 0, 27, 0, 0, 0, 28, 0, 0, 0,                           // one component
      1, 1, 0, 0, 4, 0, 0, 0, 'd', 'o', 'm', 0, 0xcd, 0xcd, 0xcd, 0xcd,
      7, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0};
  const std::uint8_t large[] = {
      0, 1, 2, 0, 0, 0, 0, 2, 'h', 0, 0, 9, 0, 0, 0, 1, 'k', 0, 0, 0,
      0, 0, 0, 1, 0, 0, 0, 27, 0, 0, 0, 28,
      0, 1, 0, 0, 0, 0, 0, 4, 'd', 'o', 'm', 0, 0xcd, 0xcd, 0xcd, 0xcd,
      0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 3};
  return big ? Octets(large, large + sizeof large) : Octets(little, little + sizeof little);
}

void a_group_is_read_in_both_byte_orders() {
  for (bool big : {false, true}) {
    const Octets data = profile(big);
    Group group;
    check(group_of_profile(TAG_INTERNET_IOP, data.data(), data.size(), group), "it is found");
    check(group.id == 7 && group.version == 3, "its numbers are read");
    Group other = group;
    other.version = 9;
    check(group.is_same(other), "another version is the same group");
    other.id = 8;
    check(!group.is_same(other), "another id is another group");
  }
}

void nothing_is_read_beyond_the_end() {
  for (bool big : {false, true}) {
    const Octets whole = profile(big);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const Octets data(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      Group group;
      check(!group_of_profile(TAG_INTERNET_IOP, data.data(), size, group), "a part is no group");
    }
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (int bits : {0x01, 0x80, 0xff}) {
        Octets data = whole;
        data[at] = static_cast<std::uint8_t>(data[at] ^ bits);
        Group group;
        group_of_profile(TAG_INTERNET_IOP, data.data(), data.size(), group);
        group_of_profile(TAG_MULTIPLE_COMPONENTS, data.data(), data.size(), group);
      }
    }
  }
}

void contexts_are_encapsulations() {
  const Octets request = ft_request("abc", -2, 0x0102030405060708);
  Reader reader = Reader::encapsulation(request.data(), request.size());
  check(reader.octets(false).text() == std::string("abc\0", 4), "the client id comes first");
  check(reader.u32() == 0xfffffffe, "then the retention id");
  check(reader.u64() == 0x0102030405060708 && reader.is_good(), "then the expiration time");
  check(one_number(5) == Octets({1, 0, 0, 0, 5, 0, 0, 0}), "a version has 8 octets");
}

}  // namespace

int main() {
  repetitions_are_those_of_table_23_1();
  a_group_is_read_in_both_byte_orders();
  nothing_is_read_beyond_the_end();
  contexts_are_encapsulations();
  return 0;
}
