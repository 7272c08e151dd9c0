/* The layer for C++: values, tensors, functions and errors. */
#include <iostream>

#include "tilewright.hpp"

using tilewright::Value;

static int failures = 0;

static void expect(bool holds, const char *what) {
  if (!holds) {
    std::cerr << "not so: " << what << "\n";
    failures++;
  }
}

template <typename Body>
static void refused(tw_status status, const std::string &part, Body body) {
  try {
    body();
    std::cerr << "not refused: " << part << "\n";
    failures++;
  } catch (const tilewright::Error &error) {
    expect(error.status() == status && std::string(error.what()).find(part) != std::string::npos, error.what());
  }
}

int main() {
  Value list = std::vector<Value>{1, 2.5, "three"};
  Value copy = list, moved = std::move(copy);
  expect(moved.length() == 3 && moved.items()[0].integer() == 1, "a list keeps its items");
  expect(moved.items()[1].real() == 2.5 && moved.items()[2].string() == "three", "items keep their kinds");
  Value map = std::map<std::string, Value>{{"a", 1}, {"b", list}};
  expect(map["b"].length() == 3, "a map keeps its values");
  refused(TW_NOT_FOUND, "no c; it has: a, b", [&] { map["c"]; });
  refused(TW_INVALID_ARGUMENT, "not a float", [&] { map["a"].real(); });

  Value sums = tilewright::tensor<float>({1, 2, 3, 4}, {2, 2});
  expect(sums.shape() == std::vector<std::int64_t>{2, 2}, "a tensor has its shape");
  expect(sums.elements<float>() == std::vector<float>{1, 2, 3, 4}, "a tensor has its elements");
  refused(TW_INVALID_ARGUMENT, "another type", [&] { sums.elements<std::int8_t>(); });
  refused(TW_INVALID_ARGUMENT, "do not fill", [&] { tilewright::tensor<float>({1, 2, 3}, {2, 2}); });

  int calls = 0;
  {
    Value add = tilewright::function("add", [&calls](const std::vector<Value> &args) -> Value {
      calls++;
      if (args.size() != 2) throw std::invalid_argument("it adds two integers");
      return args[0].integer() + args[1].integer();
    });
    expect(add(2, 3).integer() == 5, "a function is called");
    refused(TW_FAILED, "add: it adds two integers", [&] { add(2); });
    refused(TW_FAILED, "add: the value is not an integer", [&] { add(2, "3"); });
    tilewright::register_function(add);
  }
  expect(calls == 3, "the function itself ran");

  Value device = tilewright::device("fsim", "1x4x4");
  Value at = device.call("alloc", 16);
  expect(device.call("memory_bytes").integer() > device.call("free_bytes").integer(), "memory is taken");
  device.call("free", at, 16);
  expect(device.call("memory_bytes").integer() == device.call("free_bytes").integer(), "memory is free again");
  refused(TW_NOT_FOUND, "named fly", [&] { device.call("fly"); });
  if (failures == 0) std::cout << "all as it should be\n";
  return failures != 0;
}
